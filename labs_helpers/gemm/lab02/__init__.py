"""Lab 02: one kernel instead of three."""
