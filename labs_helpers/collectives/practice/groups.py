"""The former place of `labs_helpers.practice.groups`, for students' older copies of lab 07."""

from labs_helpers.practice.groups import practice_groups

__all__ = ["practice_groups"]
