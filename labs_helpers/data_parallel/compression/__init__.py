"""Communication hooks that compress gradients before they send them (lab 08)."""
