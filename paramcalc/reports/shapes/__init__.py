"""Types of the dicts that become JSON.

A fold builds its answer as a dict, because importing pydantic takes longer than most answers do. Here mypy finds the
keys and types of these dicts. `XDict` is the dump of the pydantic class `X` in the module of the same name in
`paramcalc.reports`; a test compares the two, key by key.
"""
