"""Test that every layout follows the loss curve of a single rank and can resume another's checkpoint, and its
records."""

import dataclasses
import functools

import cloudpickle
import numpy as np
import pytest

from labs_helpers.tensor_parallel.traffic import parameters_per_rank
from tests import real_ranks
from tests.training import runs
from tests.training.runs import SAVED, STEPS, settings

BOUNDS = {"float64": 1e-5, "float32": 1e-3}
NAIVE, SEQUENCE, ZERO = {"scheme": "naive"}, {"sequence_parallel": True}, {"zero": 1}
INTERLEAVED = {"schedule": "interleaved", "chunks": 2}
ALONE = {
    "float64 alone": settings(1, 1),
    "float32 alone": settings(1, 1, "float32"),
    "digits alone": settings(1, 1, data="digits"),
}
LAYOUTS = {  # of four ranks at most; test_soak.py has all of eight, in both dtypes
    "1 × 2": settings(1, 2),
    "2 × 1": settings(2, 1, way="own"),
    "1 × 4": settings(1, 4, way="own", **SEQUENCE),
    "4 × 1": settings(4, 1),
    "2 × 2": settings(2, 2, way="own", **NAIVE),
    "2 × 2 of torch": settings(2, 2, way="torch", **SEQUENCE),
    "2 × 2 in float32": settings(2, 2, "float32", **NAIVE),
    "1 × 2 in float32": settings(1, 2, "float32", **SEQUENCE),
    "1 × 2 on digits": settings(1, 2, data="digits"),
    "2 × 1 in float32": settings(2, 1, "float32"),
    "1 × 2 × 2 of torch": settings(1, 2, way="torch", pp=2, schedule="ZB-H1", **SEQUENCE),
    "2 × 2 × 1": settings(2, 1, way="own", pp=2, **ZERO, **INTERLEAVED),
    "1 × 3 × 1 on digits": settings(1, 1, data="digits", pp=3, checkpoint_activations=True),
    "2 × 2 × 1 of torch in float32": settings(2, 1, "float32", way="torch", pp=2, **ZERO),
}
GOING_ON = {  # from what 2 × 2 ranks have saved
    "on 1 × 1, the last checkpoint cut off": settings(1, 1),
    "on 1 × 2": settings(1, 2, way="own", **NAIVE),
    "on 4 × 1": settings(4, 1, way="own"),
    "on 1 × 4": settings(1, 4),
    "on 2 × 2 × 1, with ZeRO": settings(2, 1, pp=2, schedule="GPipe", **ZERO),
    "on 1 × 2 × 2": settings(1, 2, way="own", pp=2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def results(folder):
    """By the training's name, what each of its ranks found."""
    saved = folder / "saved"
    first = ALONE | {"plain loop": runs.plain_loop, "saving": settings(2, 2, checkpoint=saved)} | LAYOUTS
    going_on = {
        name: dataclasses.replace(s, checkpoint=folder / name, every=2, resume=True) for name, s in GOING_ON.items()
    }
    copies = {
        f"copy for {name}": functools.partial(runs.copy, saved, folder / name, 5_000 if "cut off" in name else None)
        for name in GOING_ON
    }
    others = {
        "in another dtype": settings(2, 1, "float32", checkpoint=saved, resume=True),
        "of another width": settings(1, 2, width=64, checkpoint=saved, resume=True),
        "anew in the same folder": settings(1, 2, checkpoint=saved),
        "at the end": settings(1, 1, checkpoint=saved, resume=True),
        "diverging": settings(1, 1, lr=1e30),
        "before any checkpoint": settings(1, 1, steps=1, checkpoint=folder / "new", resume=True),
    }
    rounds = [*map(runs.in_rounds, (first, copies, going_on, others))]
    cloudpickle.register_pickle_by_value(runs)
    by_rank = real_ranks.run(runs.several, 4, sum(rounds, []))
    names = {name: None for found in by_rank for name in found}
    return {name: [found[name] for found in by_rank if name in found] for name in names}


def of_each_rank(results, name):
    for found in results[name]:
        assert not isinstance(found, str), found
    return results[name]


def farthest(losses, others):
    assert len(losses) == len(others) > 0
    return max(abs(a - b) for a, b in zip(losses, others, strict=True))


def test_one_rank_alone_trains_like_a_plain_loop(results):
    (alone,) = of_each_rank(results, "digits alone")
    losses, validation = results["plain loop"][0]
    assert farthest(alone["losses"], losses) < 1e-6 and losses[-1] < losses[0]
    assert alone["validation"] == pytest.approx(validation, abs=1e-6)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_has_the_same_loss_curve(results, name):
    wanted = LAYOUTS[name]
    (alone,) = of_each_rank(results, "digits alone" if wanted.data == "digits" else f"{wanted.dtype} alone")
    for found in of_each_rank(results, name):
        assert farthest(found["losses"], alone["losses"]) < BOUNDS[wanted.dtype]
        assert found["validation"] == pytest.approx(alone["validation"], abs=BOUNDS[wanted.dtype])


@pytest.mark.parametrize("name", GOING_ON)
def test_every_layout_goes_on_from_a_checkpoint(results, name):
    (alone,) = of_each_rank(results, "float64 alone")
    first, *rest = of_each_rank(results, name)
    for found in (first, *rest):
        assert found["first_step"] == SAVED
        assert farthest(found["losses"], alone["losses"]) < BOUNDS["float64"] and len(found["losses"]) == STEPS
    assert all(found["said"] == [] for found in rest)
    assert f"resuming after step {SAVED}" in first["said"]["cut off" in name]


def test_a_checkpoint_that_is_cut_off_is_named_and_set_aside(results, folder):
    name = "on 1 × 1, the last checkpoint cut off"
    said = of_each_rank(results, name)[0]["said"][0]
    assert "step-00000006.checkpoint is damaged: its 5000 bytes" in said and "renamed to *.damaged" in said
    files = sorted(file.name for file in (folder / name).iterdir())
    assert files == ["step-00000004.checkpoint", "step-00000006.checkpoint", "step-00000006.checkpoint.damaged"]


def test_other_runs_are_refused_on_every_rank(results, folder):
    there = f"Refused: the checkpoint in {folder / 'saved'} is from a run with"
    assert results["in another dtype"] == [f"{there} dtype float64, but this run has float32"] * 2
    assert results["of another width"] == [f"{there} width 32, but this run has 64"] * 2
    for said in results["anew in the same folder"]:
        assert said.startswith("Refused: ") and f"has checkpoints up to step {STEPS}" in said and "--resume" in said


def test_resuming_at_the_end_and_before_the_beginning(results):
    (ended,) = of_each_rank(results, "at the end")
    assert ended["first_step"] == STEPS and len(ended["losses"]) == STEPS
    assert "step_ms" not in ended["records"][0] and "bytes_sent" not in ended["records"][0]
    (begun,) = of_each_rank(results, "before any checkpoint")
    assert begun["first_step"] == 0 and "no checkpoint" in begun["said"][0]


def test_a_loss_that_is_no_number_ends_the_training(results):
    (traceback,) = results["diverging"]
    assert "FloatingPointError: the loss of step" in traceback and "try a lower --lr" in traceback


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_record_has_what_was_sent_and_what_is_held(results, name):
    wanted = LAYOUTS[name]
    first, *rest = of_each_rank(results, name)
    assert all(found["records"] == [] for found in rest)
    *groups, curve = first["records"]
    ranks = np.arange(wanted.dp * wanted.pp * wanted.tp).reshape(wanted.dp * wanted.pp, -1)
    assert [group["ranks"] for group in groups] == ranks.tolist()
    assert [(group["dp_idx"], group["pp_idx"]) for group in groups] == [*np.ndindex(wanted.dp, wanted.pp)]
    itemsize = 8 if wanted.dtype == "float64" else 4
    for group in groups:
        assert group["bytes_sent"] == group["bytes_by_formula"] > 0
        assert group["messages_sent"] == group["messages_by_formula"] > 0
        assert group["counted"] == ("messages" if wanted.way == "own" else "calls")
        held = group["parameter_bytes"]
        assert held == group["gradient_bytes"]
        moments = 2 * held // (wanted.dp if wanted.zero else 1)
        assert moments < group["optimizer_bytes"] < moments + 200  # and a counter for each parameter
        assert group["peak_rss_bytes"] > 50e6 and group["timed_steps"] == wanted.steps - 1
        assert 0 < group["step_p20_ms"] <= group["step_ms"] <= group["step_p80_ms"]
    copies = itemsize * wanted.config.vocabulary * wanted.config.width // wanted.tp if wanted.pp > 1 else 0  # tied
    whole = itemsize * parameters_per_rank(wanted.config, wanted.tp) + copies
    assert sum(group["parameter_bytes"] for group in groups) == wanted.dp * whole
    assert (curve["pp"], curve["micro_batches"]) == (wanted.pp, wanted.micro_batches_per_step)
    assert curve["kind"] == "curve" and curve["losses"] == first["losses"] and "validation_loss" in curve


def test_progress_says_how_much_is_left(results):
    said = of_each_rank(results, "saving")[0]["said"]
    assert len(said) == STEPS and said[0].startswith("step 1 of 6: loss") and said[0].endswith("left")
    assert said[-1].startswith("step 6 of 6: loss") and said[-1].endswith("ms per step")
