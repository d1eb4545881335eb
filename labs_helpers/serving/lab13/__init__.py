"""Lab 13: Serving, from one token to a busy server."""
