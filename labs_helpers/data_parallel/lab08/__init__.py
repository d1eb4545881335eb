"""Lab 08: DDP, from naive to overlapped."""
