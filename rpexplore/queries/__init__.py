"""Lists of linear queries: how they are stated, planned and verified (math.md §5)."""
