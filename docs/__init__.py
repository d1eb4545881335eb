"""The site: what builds it, its settings, its glossary."""
