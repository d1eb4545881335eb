"""The former place of `labs_helpers.practice.process_groups`, for students' older copies of lab 09."""

from labs_helpers.practice.process_groups import practice_process_groups

__all__ = ["practice_process_groups"]
