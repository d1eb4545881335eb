"""Wrappers that average gradients over replicas: after backward, or while it runs."""
