"""What students handed in, read as data."""
