"""What is asked for: tables, their weights and targets, and the query basis of each attribute."""
