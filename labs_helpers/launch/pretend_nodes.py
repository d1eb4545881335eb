"""Simulate several nodes on one Linux machine, as root: real messages over links as slow as you like.

    with pretend_nodes(2, rate="1gbit") as nodes:
        print(nodes.measure_rate())                               # the link's measured costs: 0.99 Gb/s, α 9 µs
        nodes.run_on_ranks(lambda comm: comm.rank, 4, timeout=30)    # 2 × 4 ranks

A node is a network namespace with its own host name. One cable (a veth pair) connects each node to a switch (a bridge
in another namespace). A token bucket limits the cable in both directions and lets 100 µs' worth pass in a burst, at
least 10 kB, so smaller messages hardly feel the rate. Ranks of one node share memory; ranks of different nodes use TCP.
Each node gets its share of the cores, as long as there is one per node; all nodes share the memory bandwidth.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from labs_helpers.launch import mpirun
from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.namespaces import CARD, address, namespaces
from labs_helpers.launch.process import ProcessFailed
from labs_helpers.launch.scratch import scratch

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "taskset": "util-linux", "unshare": "util-linux"}
SIZES = tuple(8**i for i in range(1, 8))  # 8 B to 2 MB
OPEN_MPI_5 = {
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_if_include": CARD,
    "PRTE_MCA_rmaps_default_mapping_policy": "slot",  # fill one node before using the next
    "PRTE_MCA_hwloc_default_binding_policy": "none",  # otherwise every node binds to the same cores
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm,tcp",
    "OMPI_MCA_btl_tcp_if_include": CARD,
}
# Runs a command on a node.
_ENTER = """
exec ip netns exec {prefix}-{host} unshare --uts taskset --cpu-list {cores} \\
    sh -c 'echo {host} >/proc/sys/kernel/hostname; exec "$@"' sh "$@"
"""
# Open MPI calls this instead of ssh: agent ADDRESS COMMAND...
_AGENT = """
number=$((${{1##*.}} - 1))
shift
exec sh {folder}/node$number sh -c "$*"
"""


@dataclass(frozen=True)
class Link:
    """The result of a ping-pong. `seconds`: size in bytes → half of the median round trip.

    `alpha`: seconds for 8 bytes. `beta`: seconds per byte between the two largest messages, which exceed the bucket.
    `rate`: bytes/s of the largest message.
    """

    alpha: float
    beta: float
    rate: float
    seconds: dict[int, float]

    @property
    def name(self) -> str:
        """Return the link's name in records: '0.953 Gb/s'."""
        return f"{8e-9 * self.rate:.3g} Gb/s"

    def __str__(self) -> str:
        return f"{self.name}, α {1e6 * self.alpha:.3g} µs"

    def record(self) -> dict[str, Any]:
        """Return a study's record of the link: its costs, and the ping-pong they come from."""
        points = {"sizes": list(self.seconds), "medians_us": [1e6 * s for s in self.seconds.values()]}
        costs = {"alpha_us": 1e6 * self.alpha, "beta_ns": 1e9 * self.beta, "rate_Gbps": 8e-9 * self.rate}
        return {"kind": "link", "bytes": max(self.seconds), **costs, **points}


class PretendedNodes:
    """The nodes inside a `with pretend_nodes(…)`: `.hosts`, their names, and `.rate`, the requested rate (or None)."""

    def __init__(self, prefix: str, count: int, rate: str | None, folder: Path):
        self.hosts, self.rate = [f"node{i}" for i in range(count)], rate
        self._folder = folder
        (folder / "agent").write_text(_AGENT.format(folder=folder))
        cores = sorted(map(str, os.sched_getaffinity(0)), key=int)
        share = len(cores) // count
        for i, host in enumerate(self.hosts):
            own = ",".join(cores[i * share : (i + 1) * share] or cores)
            (folder / host).write_text(_ENTER.format(prefix=prefix, host=host, cores=own))

    def run_on_ranks(
        self,
        function: Callable[..., Any],
        ranks_per_node: int,
        *args: Any,
        timeout: float,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call `mpirun.run_on_ranks` with the first `ranks_per_node` ranks on the first node, and so on.

        A rank on a wrong node raises before the function is called.
        """
        if not isinstance(ranks_per_node, int) or ranks_per_node < 1:
            raise ValueError(f"ranks_per_node must be a positive whole number, not {ranks_per_node!r}")
        hosts = [host for host in self.hosts for _ in range(ranks_per_node)]
        hostfile = self._folder / f"hosts-{ranks_per_node}"
        hostfile.write_text("".join(f"{address(i)} slots={ranks_per_node}\n" for i in range(len(self.hosts))))
        settings = OPEN_MPI_5 | {
            "PRTE_MCA_plm_ssh_agent": f"sh {self._folder}/agent",
            "PRTE_MCA_prte_default_hostfile": str(hostfile),
        }
        if len(hosts) > len(os.sched_getaffinity(0)):  # a single node would not notice
            settings["OMPI_MCA_mpi_yield_when_idle"] = "1"
        enter = ["sh", f"{self._folder}/node0"]
        return mpirun.run_on_ranks(
            function, len(hosts), *args, timeout=timeout, env=settings | dict(env or {}), within=enter, hosts=hosts
        )

    def run_torch(
        self,
        function: Callable[..., Any],
        ranks_per_node: int,
        *args: Any,
        timeout: float,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call `function(*args)` with torch.distributed (gloo) initialized; otherwise as `run_on_ranks`.

        This sets torchrun's variables (RANK, LOCAL_RANK, …). gloo has no shared memory: inside a node it uses TCP at
        full speed.
        """

        @functools.wraps(function)
        def with_gloo(comm: Any, *args: Any) -> Any:
            import torch.distributed

            os.environ |= {"RANK": str(comm.rank), "LOCAL_RANK": str(comm.rank % ranks_per_node)}
            torch.distributed.init_process_group("gloo")
            result = function(*args)
            torch.distributed.destroy_process_group()
            return result

        world = {
            "WORLD_SIZE": str(len(self.hosts) * ranks_per_node),
            "LOCAL_WORLD_SIZE": str(ranks_per_node),
            "MASTER_ADDR": address(0),
            "MASTER_PORT": "29500",
            "GLOO_SOCKET_IFNAME": CARD,
            "TORCH_CPP_LOG_LEVEL": "ERROR",  # otherwise each connection warns that no name server knows the other end
        }
        return self.run_on_ranks(with_gloo, ranks_per_node, *args, timeout=timeout, env=world | dict(env or {}))

    def measure_rate(self, inside: bool = False, timeout: float = 60) -> Link:
        """Measure the link between the first two nodes with a ping-pong of MPI messages of 8 B to 2 MB; `inside`:
        between two ranks of the first node instead. Run nothing else meanwhile. Raises as `run_on_ranks` does."""
        seconds = self.run_on_ranks(_ping_pong, 2 if inside else 1, timeout=timeout)[0]
        first, *_, before, last = SIZES
        beta = (seconds[last] - seconds[before]) / (last - before)
        return Link(seconds[first], beta, last / seconds[last], seconds)


@contextmanager
def pretend_nodes(count: int, rate: str | None = None) -> Iterator[PretendedNodes]:
    """Yield `count` nodes, and remove them at the end, after an error or interrupt, and when this process is killed.

    rate: of each node's cable and direction, '200mbit' or '1gbit'; None sets no limit. Raises RuntimeError if nodes
    cannot be simulated here (`can_pretend`), and ValueError for a count below 1 or an invalid rate.
    """
    if reason := can_pretend():
        raise RuntimeError(f"nodes cannot be pretended here: {reason}")
    with namespaces(count, rate) as prefix, scratch("nodes-") as folder:
        yield PretendedNodes(prefix, count, rate, folder)


@functools.cache
def can_pretend() -> str:
    """Return the reason why `pretend_nodes` does not work here, or '' if it does. The result is cached."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        packages = dict.fromkeys(PROGRAMS[name] for name in missing)
        return f"{', '.join(missing)} not found (install {', '.join(packages)})"
    try:
        flavour = find_flavour()
    except (FileNotFoundError, RuntimeError) as error:
        return str(error)
    if flavour.name != "Open MPI" or int(flavour.version.partition(".")[0]) < 5:
        return f"Open MPI 5 is needed, and {flavour.mpirun} is {flavour.name} {flavour.version}"
    try:
        with namespaces(2, "1gbit"):
            pass
    except ProcessFailed as error:
        return f"root may not do it here, as in many containers:\n{error.output.strip()}"
    if " " in sys.prefix:
        return f"Open MPI starts its daemons by an unquoted name, and {sys.prefix} has a space"
    return ""


def _ping_pong(comm: Any) -> dict[int, float]:
    """Return the seconds of a message between ranks 0 and 1, by size: half of the median round trip. Other ranks
    return {}."""
    import numpy as np

    medians: dict[int, float] = {}
    for size in SIZES if comm.rank < 2 else ():
        data, times = np.zeros(size, np.uint8), []
        for _ in range(3 + int(min(200, max(5, 2**22 / size)))):
            start = perf_counter()
            for turn in (0, 1):
                if comm.rank == turn:
                    comm.Send(data, 1 - comm.rank)
                else:
                    comm.Recv(data, 1 - comm.rank)
            times.append((perf_counter() - start) / 2)
        medians[size] = float(np.median(times[3:]))  # the first messages open the connection
    return medians
