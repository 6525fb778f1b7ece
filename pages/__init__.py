"""The app's pages, one file each, and what they share (names with an underscore)."""
