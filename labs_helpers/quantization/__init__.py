"""The library that lab 12 teaches."""
