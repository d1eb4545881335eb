"""Tools for maintainers: keep notebooks, references and the table of labs in line, and start a new lab."""
