"""The course's site: its build, settings and glossary."""
