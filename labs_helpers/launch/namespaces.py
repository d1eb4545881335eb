"""Create network namespaces joined by rate-limited cables, and remove them however this process ends.

Everything is inside namespaces and disappears with them. Their names identify the process that created them, so the
next process recognizes and removes the leftovers of a killed one.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labs_helpers.launch.process import run

CARD = "eth0"  # of every node
NAMES = Path("/run/netns")  # the folder of `ip netns`
MTU = 9000  # bytes per packet: less work for the kernel than with 1500
BURST_S = 1e-4  # the bucket's depth; a timer that is later than this loses bandwidth
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_PREFIX = re.compile(r"(pretended-(\d+)-(\d+)-\d+)-(?:switch|node\d+)")

# Ends the processes in the named namespaces and removes these; `cat` waits for the end of its stdin.
_TAKE_DOWN = """
trap "" HUP INT TERM
cat >/dev/null
for name; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        pids=$(ip netns pids "$name") && [ -n "$pids" ] || break
        kill -KILL $pids
    done
    ip netns delete "$name"
done
"""
_numbers = itertools.count()


def address(node: int) -> str:
    return f"10.77.0.{node + 1}"


@contextmanager
def namespaces(count: int, rate: str | None) -> Iterator[str]:
    """Create namespaces PREFIX-node0, PREFIX-node1, …, each with an Ethernet card; yield PREFIX.

    rate: see `pretend_nodes`. Raises ValueError, and ProcessFailed if the kernel refuses.
    """
    if not isinstance(count, int) or not 1 <= count <= 250:
        raise ValueError(f"count must be a number of nodes from 1 to 250, not {count!r}")
    limit = None if rate is None else _bucket(rate)
    remove_leftovers()
    prefix = f"pretended-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"
    names = [f"{prefix}-switch", *(f"{prefix}-node{i}" for i in range(count))]
    guard = subprocess.Popen(
        ["sh", "-c", _TAKE_DOWN, "sh", *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        run(["sh", "-exc", _plan(prefix, count, limit)], timeout=60)
        yield prefix
    finally:
        guard.communicate()


def remove_leftovers() -> None:
    """Remove the namespaces of processes that no longer exist."""
    names = [path.name for path in NAMES.glob("pretended-*")]
    parts = {name: match for name in names if (match := _PREFIX.fullmatch(name))}
    left = [name for name, match in parts.items() if _started(int(match[2])) != int(match[3])]
    if left:
        run(["sh", "-c", _TAKE_DOWN, "sh", *left], timeout=60)


def _plan(prefix: str, count: int, limit: tuple[str, int] | None) -> str:
    """Return the commands that build the network."""
    switch, card = f"{prefix}-switch", f"mtu {MTU}"
    if limit is not None:
        card += f" gso_max_size {min(65536, limit[1] - 500)}"  # the bucket must hold the largest packet
    lines = [f"ip netns add {switch}", f"ip -n {switch} link add switch mtu {MTU} type bridge"]
    lines += [f"ip -n {switch} link set switch up"]
    for i in range(count):
        node, port = f"{prefix}-node{i}", f"port{i}"
        lines += [
            f"ip netns add {node}",
            f"ip -n {node} link set lo up",
            f"ip -n {node} link add {CARD} type veth peer name {port} netns {switch}",
            f"ip -n {node} address add {address(i)}/24 dev {CARD}",
            f"ip -n {node} link set {CARD} {card} up",
            f"ip -n {switch} link set {port} master switch {card} up",
        ]
        if limit is not None:
            bucket = f"root tbf rate {limit[0]} burst {limit[1]} limit 10mb"
            lines += [f"tc -n {node} qdisc add dev {CARD} {bucket}", f"tc -n {switch} qdisc add dev {port} {bucket}"]
    return "\n".join(lines)


def _bucket(rate: str) -> tuple[str, int]:
    """Return a rate and the depth of its token bucket in bytes, in tc's notation."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit)", rate) if isinstance(rate, str) else None
    if not match or not float(match[1]):
        raise ValueError(f"rate must be such as '200mbit' or '1gbit', or None, not {rate!r}")
    return rate, max(MTU + 1000, int(float(match[1]) * UNITS[match[2]] / 8 * BURST_S))


def _started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it does not exist. Process ids are reused,
    start times are not."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return None
