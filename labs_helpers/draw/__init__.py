"""One look for all figures, and names that do not overlap."""
