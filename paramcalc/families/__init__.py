"""Recipes: one small function per architecture, grouped by kinship. A module is imported when one of its families is
asked for; `registry` knows which."""
