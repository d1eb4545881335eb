from dataclasses import replace

import pytest
import torch

from labs_helpers.measure import roofs
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.roofs import Roofs, measure_roofs
from labs_helpers.measure.timing import Timing


def test_this_machine_s_roofs():
    measured = measure_roofs()
    assert measured.dtype == str(this_machine().dtype).removeprefix("torch.")
    assert measured.copied_bytes >= 2 * min(256 * 2**20, this_machine().memory_bytes // 16)
    assert measured.n >= 1024
    # Wide enough for anything from a phone to a rack; a slip of units is a factor of 1000.
    assert 1e8 < measured.bandwidth < 1e14 and 1e8 < measured.flops < 1e16


def test_bytes_read_and_written_and_multiply_adds_are_counted(monkeypatch):
    machine = replace(this_machine(), device="cpu", capability=None, cores=2, memory_bytes=2**24)
    seen = []

    def one_millisecond(fn, device):
        seen.append((fn(), device))
        return Timing(1.0, 1.0, 1.0, 5)

    monkeypatch.setattr(roofs, "measure", one_millisecond)
    found = measure_roofs(machine)
    (copied, _), (product, _) = seen
    assert copied.numel() * copied.element_size() == 2**20 and bool((copied == 1).all())
    assert found.copied_bytes == 2 * 2**20 and found.bandwidth == pytest.approx(2 * 2**20 / 1e-3)
    assert product.shape == (1024, 1024) and product.dtype is torch.float32
    # Entries of a product of standard normal matrices have variance n.
    assert product.std().item() == pytest.approx(1024**0.5, rel=0.05)
    assert found.flops == pytest.approx(2 * 1024**3 / 1e-3)
    assert [device for _, device in seen] == ["cpu", "cpu"]


def test_ridge():
    assert Roofs(bandwidth=4e12, flops=800e12, dtype="float16").ridge == 200
