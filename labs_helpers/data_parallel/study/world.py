"""The ranks of this study: found in torchrun's environment or Slurm's, begun with a time limit, and ended by name."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from labs_helpers.data_parallel.study.watch import Watch

PATIENCE_S = 3.0  # that a rank waits for the others to say that they have failed, too
LONGER = timedelta(minutes=5)  # until NCCL's watchdog ends a rank without a name, after ours should have


class Failed(RuntimeError):
    """A rank's error, with the names of the ranks that were the first to fail, or do not answer."""


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT: torchrun's, or made of what srun tells its tasks.

    With srun rank 0's host is the first of the step's, and the port follows from job and step. RuntimeError where
    nobody has started ranks.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    if "RANK" in environ:
        return {name: environ[name] for name in names if name in environ}
    if "SLURM_PROCID" not in environ or "SLURM_STEP_ID" not in environ:
        raise RuntimeError(
            "no ranks: start this with torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study, with "
            "srun --ntasks 2 python -m labs_helpers.data_parallel.study, or with --pretend-nodes 2"
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
    """Of a list as Slurm writes it: 'gpu[07-09,12],login' → 'gpu07'."""
    found = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\])?([^,]*)", hosts)
    if not found:
        raise ValueError(f"{hosts!r} is no list of hosts")
    name, number, rest = found.groups()
    return name + (number or "") + rest


@contextmanager
def world(timeout: float, gpus: bool) -> Iterator[Callable[[str], None]]:
    """Within it torch.distributed is initialised: NCCL with `gpus`, a GPU per rank, else gloo with a thread per rank.

    Yields a function that notes what begins. timeout: seconds that a collective may take. An error inside is followed
    by Failed. With NCCL, where a rank whose partner is gone waits on the GPU and has no error, a `Watch` ends it.
    """
    os.environ |= environment(os.environ)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    limit = timedelta(seconds=timeout)
    store, rank, size = next(iter(rendezvous("env://", timeout=limit)))
    device = None
    if gpus:
        # A task of Slurm may see one GPU alone, which then is number 0.
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)  # ranks are what shares the cores
    calls: Any = PrefixStore("roll call", store)
    dist.init_process_group(
        "nccl" if gpus else "gloo", store=store, rank=rank, world_size=size, timeout=limit + LONGER * gpus,
        device_id=device,
    )  # fmt: skip
    begun = ""

    def note(what: str) -> None:
        nonlocal begun
        begun = what
        calls.set(f"at {rank}", what)

    note("the beginning")
    watch = None
    if gpus:
        group: Any = dist.group.WORLD
        watch = Watch(calls.clone(), rank, size, lambda: (group._get_sequence_number_for_group(), begun), timeout)
        watch.start()
    try:
        yield note
    except Exception as error:
        if watch:
            watch.stop()
        said = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise Failed(
            roll_call(calls, rank, size, said, by_itself=not _of_communication(error), patience=PATIENCE_S)
        ) from error
    if watch:
        watch.stop()
    dist.destroy_process_group()


def roll_call(store: Any, rank: int, size: int, said: str, by_itself: bool, patience: float) -> str:
    """Why this rank has failed, in words. `said`: its error; by_itself: not because the others did.

    Every rank that fails says so in the store. One that was killed, or is stuck, cannot: its silence names it, with
    what it had begun. Rank 0 stays until the others have read, since the store may be its own.
    """
    try:
        first = store.compare_set("first", "", f"rank {rank}: {said}").decode()
        store.set(f"failed {rank}", said)
        if by_itself and first.startswith(f"rank {rank}:"):
            told, silent = f"rank {rank} failed: {said}", set[int]()
        else:
            silent = _missing(store, "failed", set(range(size)) - {rank}, patience)
            told = f"rank {rank} failed after {first}"
        if silent:
            at = {other: store.get(f"at {other}").decode() for other in silent if store.check([f"at {other}"])}
            who = [
                f"rank {n} does not answer (killed, or stuck) since {at.get(n, 'its start')}" for n in sorted(silent)
            ]
            told = f"{'; '.join(who)}. Rank {rank} then failed: {said}"
        store.set(f"told {rank}", told)
        if rank == 0:
            _missing(store, "told", set(range(size)) - silent, patience)
        return told
    except Exception:  # the store is gone: it is rank 0's, where torchrun does not keep it
        return f"rank 0, which keeps the store, does not answer. Rank {rank} then failed: {said}"


def _missing(store: Any, what: str, ranks: set[int], patience: float) -> set[int]:
    """Those of the ranks that have not said it within so many seconds."""
    deadline = time.monotonic() + patience
    while ranks and time.monotonic() < deadline:
        ranks = {rank for rank in ranks if not store.check([f"{what} {rank}"])}
        time.sleep(0.02)
    return ranks


def _of_communication(error: Exception) -> bool:
    """Whether it is about another rank. gloo's errors have no type of their own."""
    words = ("gloo", "NCCL", "Connection", "Timed out", "timed out")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)
