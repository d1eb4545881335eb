"""Lab 11: The clinic."""
