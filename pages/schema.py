"""Schema page."""
