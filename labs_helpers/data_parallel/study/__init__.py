"""Measure data parallelism on real ranks: one command, one file per kind of measurement; see `__main__`."""

from labs_helpers.data_parallel.study.records import STUDY, frame, load

__all__ = ["STUDY", "frame", "load"]
