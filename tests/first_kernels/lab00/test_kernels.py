"""Test in the interpreter that the kernels of lab 00's study compute what their names say."""

import torch

from labs_helpers.first_kernels.lab00.in_flight import READ_BYTES, STAGES, read_kernel
from labs_helpers.first_kernels.lab00.latency import CHASES, LINE, chase_kernel, ring
from labs_helpers.first_kernels.lab00.wave_times import compute_kernel


def test_a_ring_passes_every_line_once_and_a_chase_follows_it():
    following, step = ring(4096, "cpu"), LINE // 4
    place, seen = 0, []
    for _ in range(4096 // LINE):
        seen.append(place)
        place = int(following[place])
    assert place == 0 and sorted(seen) == list(range(0, 1024, step))
    places = torch.zeros(3, dtype=torch.int32)
    chase_kernel[(3,)](following, places, 5, step)
    for i, place in enumerate(places.tolist()):
        at = i * step
        for _ in range(5):
            at = int(following[at])
        assert at == place


def test_a_read_adds_everything_up_once():
    x, out = torch.arange(128.0 * 12), torch.zeros(5)
    for stages in STAGES:
        read_kernel[(5,)](x, out, x.numel(), BLOCK=128, STAGES=stages)
        assert out.sum() == x.sum()


def test_programs_that_compute_write_their_own_blocks():
    out = torch.full((1024,), torch.nan)
    compute_kernel[(2,)](out, 2, BLOCK=512)
    assert torch.equal(out[:512], out[512:]) and out.isfinite().all()


def test_sizes_fit_what_they_are_to_measure():
    L1, L2, DRAM = (nbytes for nbytes, _ in CHASES.values())
    assert L1 < 128 * 2**10 and 2**20 < L2 < 30 * 2**20 and DRAM > 4 * 60 * 2**20
    assert READ_BYTES % (64 * 512) == 0
