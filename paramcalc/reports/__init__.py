"""The JSON contract: one pydantic class for each report."""
