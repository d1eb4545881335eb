"""The style of all figures, and labels that do not overlap."""
