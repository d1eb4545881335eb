"""Run a student's code with limits on all resources, and without access to anybody else's data."""
