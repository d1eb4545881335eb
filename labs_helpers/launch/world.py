"""Start torch.distributed from torchrun's or Slurm's environment, watch its ranks, and name the culprit if they
fail."""

from __future__ import annotations

import os
import re
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

from labs_helpers.launch.leave import end_process
from labs_helpers.launch.program import name, seconds, sentence, start_limit
from labs_helpers.launch.watch import Watch

# Process groups that also carry messages, of which each rank sends and receives a different number.
with_messages: set[str] = set()
LONGER = timedelta(minutes=5)  # so that `Watch`, which knows the names, ends a rank before anything else does


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, from torchrun or derived from srun's variables.

    With srun, rank 0's host is the first one of the step, and the port is derived from job and step. Raises
    RuntimeError if nobody has started ranks.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    if "RANK" in environ:
        return {name: environ[name] for name in names if name in environ}
    if "SLURM_PROCID" not in environ or "SLURM_STEP_ID" not in environ:
        raise RuntimeError(
            f"no ranks: start this with torchrun --nproc-per-node 2 {name()}, or with srun --ntasks 2 python {name()}"
        )
    job, step = int(environ["SLURM_JOB_ID"]), int(environ["SLURM_STEP_ID"])
    return {
        "RANK": environ["SLURM_PROCID"],
        "WORLD_SIZE": environ["SLURM_STEP_NUM_TASKS"],
        "LOCAL_RANK": environ["SLURM_LOCALID"],
        "MASTER_ADDR": environ.get("MASTER_ADDR", first_host(environ["SLURM_STEP_NODELIST"])),
        "MASTER_PORT": environ.get("MASTER_PORT", str(20_000 + (97 * job + step) % 20_000)),
    }


def first_host(hosts: str) -> str:
    """Return the first host of a list in Slurm's notation: 'gpu[07-09,12],login' → 'gpu07'."""
    found = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\])?([^,]*)", hosts)
    if not found:
        raise ValueError(f"{hosts!r} is no list of hosts")
    name, number, rest = found.groups()
    return name + (number or "") + rest


def add_timeout(parser: ArgumentParser) -> None:
    """Add the option --timeout, for `world`."""
    told = "seconds within which all ranks have to arrive, and some rank has to begin a collective"
    parser.add_argument("--timeout", type=seconds, default=300.0, metavar="S", help=f"{told}; default: %(default)g")


@contextmanager
def world(timeout: float, limit: float, gpus: bool) -> Iterator[Callable[[str], None]]:
    """Initialize torch.distributed inside the block: NCCL with `gpus`, one GPU per rank, else gloo with one thread per
    rank.

    Yields a function that notes the activity that begins. If a rank fails, dies, is stopped, does not arrive, or keeps
    the others waiting for `timeout` seconds, all ranks end with status 1 and a message that names it: see `Watch`. A
    run of more than `limit` seconds also ends this way.
    """
    start_limit(limit + LONGER.total_seconds())
    os.environ |= environment(os.environ)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = None
    if gpus:
        # A Slurm task may see only one GPU, which then has number 0.
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)  # the ranks share the cores
    store, by_torchrun = connect(os.environ, timeout)
    watch = Watch(
        PrefixStore("watch", store.clone()), rank, size, collectives_begun, timeout, limit, by_torchrun=by_torchrun
    )
    watch.start()
    try:
        watch.all_here.wait()
        dist.init_process_group(
            "nccl" if gpus else "gloo", store=PrefixStore("group", store), rank=rank, world_size=size,
            timeout=timedelta(seconds=timeout) + LONGER, device_id=device,
        )  # fmt: skip
        watch.note("the beginning")
        yield watch.note
        watch.note("its end")
    except Exception as error:
        known = sentence(error)
        said = known or f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        told = watch.finish(said)
        if told.startswith(f"rank {rank} failed"):
            if not known:
                traceback.print_exception(error)
            watch.end(told)
        else:
            watch.end(f"{told} Rank {rank} then failed: {said}")
    if told := watch.finish():
        watch.end(f"{told} Rank {rank} ends.")
    dist.destroy_process_group()


def connect(environ: Mapping[str, str], timeout: float) -> tuple[Any, bool]:
    """Return the store of these ranks, and whether torchrun keeps it; otherwise rank 0 does. Wait only for the
    process that keeps it."""
    host, port, rank = environ["MASTER_ADDR"], int(environ["MASTER_PORT"]), int(environ["RANK"])
    by_torchrun = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    TCPStore: Any = dist.TCPStore  # type: ignore[attr-defined]
    try:
        store = TCPStore(
            host, port, is_master=rank == 0 and not by_torchrun, timeout=timedelta(seconds=timeout),
            wait_for_workers=False,
        )  # fmt: skip
    except dist.DistError:
        keeper = "torchrun" if by_torchrun else "rank 0"
        end_process(f"{keeper}, which keeps the store at {host}:{port}, has not arrived within {timeout:g} s.")
    return PrefixStore(f"attempt {environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store), by_torchrun


def collectives_begun() -> dict[str, int]:
    """Return the number of collectives that this rank has begun, by the name of the process group; "0" is all ranks.

    A group of `with_messages` has a different name on each rank, so that no rank's count is compared with another's.
    """
    counts: dict[str, int] = {}
    groups: Mapping[Any, str] = dist.distributed_c10d._world.pg_names
    for group, named in dict(groups).items():
        key = f"{named} of rank {dist.get_rank()}" if named in with_messages else named
        with suppress(RuntimeError):  # it is only being made, or does not count
            counts[key] = group._get_sequence_number_for_group()
    return counts
