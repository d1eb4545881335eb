"""Read submissions as data, without running them."""
