"""The collectives as messages, one algorithm per file."""
