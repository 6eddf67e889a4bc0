"""The JSON contract: a pydantic class for every report, and in `shapes` the type of the dict that a fold builds."""
