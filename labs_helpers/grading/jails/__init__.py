"""Run a student's code with limits on everything, and with nothing of others within reach."""
