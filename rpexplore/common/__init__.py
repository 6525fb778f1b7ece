"""Numbers, text and files: what every other package builds on. Knows nothing of privacy or tables."""
