"""Lab 07: 2D parallelism: data × tensor."""
