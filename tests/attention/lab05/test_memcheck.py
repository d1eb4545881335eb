"""Test that the committed memcheck record covers every attention kernel and has no errors."""

from labs_helpers.attention.lab05 import every_kernel
from labs_helpers.measure import results


def test_every_kernel_is_recorded_as_clean():
    record = results.load(
        results.path_for("attention-memcheck", "nvidia-h200"),
        command="python -m labs_helpers.attention.lab05.every_kernel --memcheck",
    ).iloc[-1]
    assert record["errors"] == 0
    ran = "\n".join(record["ran"])
    for kernel in (
        "row softmax",
        "lab 04, forward",
        "lab 04, causal",
        "lab 05, dQ",
        "lab 05, dK and dV",
        "one kernel",
        "general forward, D = 24",
        "general backward, D = 128",
        "Hopper forward, D = 64",
        "Hopper forward, D = 128",
        "Hopper backward, D = 64",
        "Hopper backward, D = 128",
        "Hopper forward, D = 64: 203 queries, 1100 keys",
    ):
        assert kernel in ran


def test_memcheck_counts_errors_and_what_ran(monkeypatch):
    said = "ran lab 04, forward\nran Hopper forward\n========= ERROR SUMMARY: 2 errors\n"
    monkeypatch.setattr(every_kernel, "run", lambda command, **keywords: said)
    monkeypatch.setattr(every_kernel.shutil, "which", lambda name: f"/cuda/{name}")
    monkeypatch.setattr(every_kernel, "this_machine", lambda: type("GPU", (), {"device": "cuda"}))
    record = every_kernel.memcheck()
    assert record["errors"] == 2 and record["ran"] == ["lab 04, forward", "Hopper forward"]
