"""Lab 03: find the configuration of a kernel by search, prune what cannot win, remember what did."""
