"""Lab 10: Pipeline parallelism, and three dimensions together."""
