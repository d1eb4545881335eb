"""Lab 03: tuning."""
