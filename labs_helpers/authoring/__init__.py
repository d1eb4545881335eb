"""The maintainers' room: keep notebooks, references and the table of labs in line, and begin a new lab."""
