"""The collectives as messages, an algorithm a file."""
