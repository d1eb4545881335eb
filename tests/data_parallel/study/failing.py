"""Three ranks of the study, of which one fails in each of the ways named: python failing.py killed-1 stuck-1 raised-1

Prints a line per rank and way. The ranks are forked, so that torch is imported once. With gpus as the first argument
two ranks, on GPUs with NCCL.
"""

import os
import signal
import socket
import sys

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.study import watch
from labs_helpers.data_parallel.study import world as module

GPUS = sys.argv[1:2] == ["gpus"]
WORLD = 2 if GPUS else 3


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def rank_of(way, victim, rank, port):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

    def end(told):
        print(f"{way}-{victim} {rank}: {told}", flush=True)
        os._exit(1)

    watch._end, watch.SILENCE_S = end, 4.0
    device = f"cuda:{rank}" if GPUS else "cpu"
    try:
        with module.world(timeout=8 if GPUS else 1.5, gpus=GPUS) as note:
            dist.barrier()
            note("wrappers")
            if rank == victim and way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if rank == victim and way == "stuck":
                signal.pause()
            if rank == victim and way == "raised":
                raise ValueError("no such size")
            dist.all_reduce(torch.ones(1, device=device))
            if GPUS:
                torch.cuda.synchronize()
    except module.Failed as error:
        print(f"{way}-{victim} {rank}: {str(error).splitlines()[0]}", flush=True)


def main(ways):
    for way, victim in (name.split("-") for name in ways):
        victim, port, children = int(victim), free_port(), []
        for rank in range(WORLD):
            children.append(os.fork())
            if children[-1] == 0:
                rank_of(way, victim, rank, port)
                os._exit(0)
        for rank in sorted(range(WORLD), key=lambda rank: rank == victim):
            if (way, rank) == ("stuck", victim):
                os.kill(children[rank], signal.SIGKILL)  # as torchrun and srun do
            os.waitpid(children[rank], 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    module.PATIENCE_S = 0.5
    main(sys.argv[1 + GPUS :])
