"""Read what students handed in, as data."""
