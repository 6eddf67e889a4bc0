"""The version, in one place; pyproject reads it from here. And that of the JSON, which changes less often."""

__version__ = "0.1.0"
SCHEMA_VERSION = 1
