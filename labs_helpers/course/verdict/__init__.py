"""How a check says right or wrong: what it compares, which causes it tries, and the words it uses."""
