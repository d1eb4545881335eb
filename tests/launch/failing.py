"""Ranks of which one fails: python failing.py PROGRAM WAY-PLACE-VICTIM...            such as: world stopped-between-1

PROGRAM: world (three ranks, a few collectives), or one of the course's programs, study or race, on two ranks and at its
smallest. WAY: stopped and killed (by signals), raised, stuck (it lives, and does not go on); busy (it holds Python's
lock for a while) and paused (all ranks are stopped, and continue), which harm nobody. PLACE: see `plant`. Prints
'CASE RANK: what it said last' for each rank that could speak, and 'CASE RANK: ended by …' for a healthy one that had to
be ended from outside. Ranks are forked, so that torch is imported once, and find one another as srun's do. All cases
run at the same time. With gpus as the first argument ranks are on GPUs, with NCCL.
"""

import ctypes
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist

from labs_helpers.launch import leave, watch, world

LIMIT_S = 80  # of a rank
TIMEOUT_S, WHILE_S = 10.0, 6  # a while is longer than a dead rank is waited for
GPUS = sys.argv[1] == "gpus"
WHAT = {
    "study": ["scaling", "--size", "tiny", "--length", "16", "--batches", "1", "--rounds", "2"],
    "race": ["--heats", "wrappers", "--length", "16", "--batch", "1", "--rounds", "2", "--steps", "1"],
}


def fail(way):
    if way in ("stopped", "killed"):
        os.kill(os.getpid(), signal.SIGSTOP if way == "stopped" else signal.SIGKILL)
    if way == "raised":
        raise ValueError("no such size")
    if way == "busy":
        ctypes.PyDLL(None).sleep(WHILE_S)
    if way == "paused" and os.fork() == 0:
        ranks = os.getpgrp()
        os.setsid()
        os.killpg(ranks, signal.SIGSTOP)
        time.sleep(WHILE_S)
        os.killpg(ranks, signal.SIGCONT)
        os._exit(0)
    while way == "stuck":
        signal.pause()


def plant(way, place, program):
    """From now on this process fails when it comes to the place."""

    def before(owner, name, number=1):
        function, calls = getattr(owner, name), []

        def planted(*args, **kwargs):
            calls.append(name)
            if len(calls) == number:
                fail(way)
            return function(*args, **kwargs)

        setattr(owner, name, planted)

    all_reduce = dist.all_reduce

    def in_the_middle(tensor, *args, **kwargs):
        all_reduce(tensor, *args, **kwargs | {"async_op": True})
        fail(way)

    if place == "arrival":
        fail(way)
    elif place == "start":  # it has arrived
        before(dist, "init_process_group")
    elif place == "collective":
        dist.all_reduce = in_the_middle
    elif place == "between":
        before(dist, "barrier", 2)
    elif place == "alone":
        if program == "study":
            from labs_helpers.measure import race

            before(race, "wait", 3)
        elif program == "race":
            from labs_helpers.data_parallel.study.setting import Setting

            before(Setting, "loss", 3)
        else:
            before(time, "monotonic_ns")
    elif place == "end":
        before(watch.Watch, "finish")


def a_few_collectives():
    with world.world(TIMEOUT_S, 60, GPUS) as note:
        dist.barrier()
        note("wrappers")
        x = torch.ones(1, device=f"cuda:{os.environ['LOCAL_RANK']}" if GPUS else "cpu")
        dist.barrier()
        dist.all_reduce(x)
        time.monotonic_ns()  # what a rank does by itself
        dist.all_reduce(x)
        if GPUS:
            torch.cuda.synchronize()


def rank_of(case, rank, ranks, port, program):
    way, place, victim = case.split("-")
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

    def end(told, stopped=()):
        os.write(1, f"{case} {rank}: {told}\n".encode())
        leave.end_process(told, stopped)

    watch.end_process = world.end_process = end
    sys.stderr = open(os.devnull, "w")
    if rank == int(victim):
        plant(way, place, program)
    if program == "world":
        a_few_collectives()
    else:
        from importlib import import_module

        out = ["--out", f"{os.environ['OUT']}/{port}.jsonl", "--timeout", str(TIMEOUT_S)]
        sys.stdout = open(os.devnull, "w")
        import_module(f"labs_helpers.data_parallel.{program}.__main__").main([*WHAT[program], *out])
    os.write(1, f"{case} {rank}: ended without an error\n".encode())


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def try_case(case, program, ranks):
    os.setpgid(0, 0)
    port, way, victim, children = free_port(), case.split("-")[0], int(case[-1]), {}
    for rank in range(ranks):
        children[rank] = os.fork()
        if children[rank] == 0:
            signal.alarm(LIMIT_S)
            try:
                rank_of(case, rank, ranks, port, program)
            finally:
                os._exit(0)
    last = None if way in ("busy", "paused") else children.pop(victim)
    for rank, pid in children.items():
        if (code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) < 0:
            os.write(1, f"{case} {rank}: ended by signal {-code}\n".encode())
    if last:
        os.kill(last, signal.SIGKILL)  # as torchrun and srun do
        os.waitpid(last, 0)


def main(program, *cases):
    torch.set_num_threads(1)
    if program != "world":
        __import__(f"labs_helpers.data_parallel.{program}.__main__")
    at_once = []
    for case in cases:
        at_once.append(os.fork())
        if at_once[-1] == 0:
            try_case(case, program, 2 if GPUS or program != "world" else 3)
            os._exit(0)
    for pid in at_once:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(*sys.argv[1 + GPUS :])
