"""Version of the package, which pyproject.toml reads from here, and version of the JSON schemas."""

__version__ = "0.1.0"
SCHEMA_VERSION = 1
