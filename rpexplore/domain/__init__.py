"""What there is to count: attributes and their values, codebooks, counts that are public."""
