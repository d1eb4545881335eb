"""The clinic's jobs: one sick, or healthy, training program per file."""
