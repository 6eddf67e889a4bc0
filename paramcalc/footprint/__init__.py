"""What a model costs in bytes: weights in any format, caches and states, working memory, device by device."""
