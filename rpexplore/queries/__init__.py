"""Plans for lists of linear queries."""
