"""Lab 00: start here."""
