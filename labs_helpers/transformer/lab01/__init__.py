"""Lab 01: profile a transformer."""
