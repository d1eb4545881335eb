"""Plans of a training: memory, traffic and time by strategy, and which strategy to take."""
