"""Find the configuration of a kernel: the space of them, recorded sweeps, and a cache that remembers what won."""
