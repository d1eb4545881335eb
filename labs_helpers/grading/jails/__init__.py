"""Where a student's code runs: with limits on everything, and nothing of others within reach."""
