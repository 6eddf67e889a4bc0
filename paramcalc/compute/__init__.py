"""FLOPs of a model for a workload, by matrix term, and the trace of a layer step by step."""
