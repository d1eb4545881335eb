"""Lab 01's transformer trained on dp × tp ranks: data, steps, checkpoints, progress, records."""
