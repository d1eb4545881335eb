"""Lab 01: Profile a transformer."""
