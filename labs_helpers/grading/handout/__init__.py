"""Build what students are given."""
