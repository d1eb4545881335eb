"""Measure data parallelism on real ranks, with one file per kind of measurement; see `__main__`."""

from labs_helpers.data_parallel.study.records import STUDY, load
from labs_helpers.measure.records import frame

__all__ = ["STUDY", "frame", "load"]
