"""Lab 09: ZeRO, from 1 to 3."""
