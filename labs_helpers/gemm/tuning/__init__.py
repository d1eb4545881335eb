"""Tune a kernel: the space of configurations, recorded sweeps, and a cache of the best configurations."""
