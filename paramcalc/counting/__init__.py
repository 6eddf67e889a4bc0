"""The count: a fold over the component tree."""
