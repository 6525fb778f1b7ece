"""Numbers, text and files. Knows nothing of privacy or tables."""
