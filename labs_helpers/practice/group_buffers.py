"""Check the buffers of collectives and return their elements, as mpi4py interprets them; errors say what does not
fit."""

from __future__ import annotations

import numpy as np

from labs_helpers.practice.message_buffer import elements


def flat(buffer, writeable: bool = False, blocks: int = 1) -> np.ndarray:
    """Do the same as `elements`. blocks: the number of ranks' blocks in it; a count, as in [array, count, type], is
    that of one block."""
    if isinstance(buffer, list | tuple) and len(buffer) > 1 and isinstance(buffer[1], int | np.integer):
        buffer = [buffer[0], blocks * buffer[1], *buffer[2:]]
    return elements(buffer, writeable)


def in_blocks(name: str, buffer, blocks: int, writeable: bool = False) -> np.ndarray:
    """Return (blocks, elements per block): what a buffer holds from each rank, or for each."""
    values = flat(buffer, writeable, blocks)
    if values.size % blocks:
        raise ValueError(f"{name}: {values.size} elements are not {blocks} equal blocks")
    return values.reshape(blocks, values.size // blocks)


def two(name: str, sendbuf, recvbuf, send_blocks: int = 1, recv_blocks: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return (send, recv) of the collective `name`, whose sizes match their numbers of blocks."""
    send, recv = flat(sendbuf, blocks=send_blocks), flat(recvbuf, writeable=True, blocks=recv_blocks)
    if send.size * recv_blocks != recv.size * send_blocks:
        if send_blocks == recv_blocks:
            raise ValueError(f"{name}: recv has {recv.size} elements, send {send.size}")
        (large, many), (small, few) = sorted(
            (("send", send), ("recv", recv)), key=lambda one: one[0] == "recv", reverse=recv_blocks > 1
        )
        ranks = max(send_blocks, recv_blocks)
        times = f"{ranks} ranks × {few.size} of {small} are {ranks * few.size}"
        raise ValueError(f"{name}: {large} has {many.size} elements, {times}")
    check_pair(name, send, recv)
    return send, recv


def check_pair(name: str, send: np.ndarray, recv: np.ndarray) -> None:
    """Raise TypeError unless both have one dtype, and ValueError if they share memory."""
    if send.dtype != recv.dtype:
        raise TypeError(f"{name}: send is {send.dtype}, recv is {recv.dtype}; they have to be the same")
    if send.size and np.may_share_memory(send, recv):  # exact for contiguous arrays
        raise ValueError(f"{name}: send and recv share memory; receive into an array of its own")
