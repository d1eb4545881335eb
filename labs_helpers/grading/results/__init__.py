"""Keep a class's results, and show them to instructors and students."""
