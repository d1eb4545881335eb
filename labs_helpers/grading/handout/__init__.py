"""What students are given."""
