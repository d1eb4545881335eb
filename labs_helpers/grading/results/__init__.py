"""What is kept of a class, and what instructors and students see of it."""
