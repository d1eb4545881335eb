"""The clinic: training jobs that are slow, stuck or wrong, and the instruments that show why."""
