"""Limit ranks by the processor time of their process, so that a busy machine does not look like an endless loop."""

from __future__ import annotations

import threading
import time

COMPUTED, IDLE = "computed", "idle"
STILL = 0.01  # share of a processor; a process that uses less does not compute
PATIENCE = 3  # times the limit, while nobody computes


def wait_patiently(over: threading.Event, seconds: float) -> str:
    """Wait for `over`, and return ''. COMPUTED: the process has computed for `seconds` meanwhile. IDLE: it has
    hardly computed for PATIENCE times as long, so something waits for an event that does not come."""
    begin = last = time.process_time()
    idle = 0.0
    while not over.wait(pause := max(seconds - (last - begin), seconds / 10)):
        now = time.process_time()
        if now - begin >= seconds:
            return COMPUTED
        idle = idle + pause if now - last < STILL * pause else 0.0  # pauses: a process that was stopped is not idle
        if idle >= PATIENCE * seconds:
            return IDLE
        last = now
    return ""
