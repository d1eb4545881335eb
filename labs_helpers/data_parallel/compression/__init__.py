"""Communication hooks that send fewer bytes than the gradients have, and what that costs in accuracy; lab 08."""
