"""Plan a training run: memory, traffic, and time of each strategy, and the choice among them."""
