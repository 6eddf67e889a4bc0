"""Recipes: one small function per architecture, filed by lineage.

A module is imported when one of its families is needed; `registry` knows which one.
"""
