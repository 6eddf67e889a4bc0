"""Language models with towers for images, audio or other inputs, by lineage."""
