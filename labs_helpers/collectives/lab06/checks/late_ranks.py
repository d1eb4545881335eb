"""A rank that is late wherever possible: after each barrier and in each reduction. It exposes missing barriers."""

import time

DELAY_S = 0.01


class LateComm:
    """A communicator whose rank resumes only some time after each barrier."""

    def __init__(self, comm):
        self._comm = comm

    def Barrier(self) -> None:
        self._comm.Barrier()
        time.sleep(DELAY_S)

    def __getattr__(self, name):
        return getattr(self._comm, name)
