"""The former place of `labs_helpers.practice`, for students' older copies of lab 06."""

from labs_helpers.practice import Deadlock, practice

__all__ = ["Deadlock", "practice"]
