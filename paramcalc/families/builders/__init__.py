"""Builders of recipes: from config fields to components, layers and models."""
