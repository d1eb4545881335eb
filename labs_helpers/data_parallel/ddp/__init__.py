"""Wrappers that average gradients over replicas, after the backward pass or during it."""
