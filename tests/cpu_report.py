"""pytest --cpu-report: print the processor time of each test file with its subprocesses, the largest first.

Unlike --durations, it gives the same result on a busy machine. A process that outlives its test counts where it is
waited for.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

SHOWN = 30


def pytest_addoption(parser):
    parser.addoption("--cpu-report", action="store_true", help="show the processor time of each file")


def pytest_configure(config):
    if config.getoption("--cpu-report"):
        config.pluginmanager.register(_Report(), "cpu report")


class _Report:
    def __init__(self):
        self.seconds = Counter()
        self.last = _used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report, now = (yield), _used()
        report.cpu_s, self.last = now - self.last, now  # a worker's report brings it to the process that shows it
        return report

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid.partition("::")[0]] += getattr(report, "cpu_s", 0.0)

    def pytest_terminal_summary(self, terminalreporter):
        total = sum(self.seconds.values())
        terminalreporter.section(f"processor time: {total:.0f} s in {len(self.seconds)} files")
        for file, seconds in self.seconds.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f} s  {file}")


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
