"""Records in databases: counted where they are."""
