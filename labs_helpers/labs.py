"""The labs in teaching order: the one table that the README, the index page, set-up, commands and tests read."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # the checkout; where the package alone is installed, nothing stands there
NOTEBOOKS = ROOT / "notebooks"
SOURCES = "https://github.com/tile-to-cluster/tile-to-cluster/blob/main"  # the checkout, for those who have none


@dataclass(frozen=True)
class Retired:
    """An exercise that a lab has no longer; older copies of its notebook still do. No other exercise gets its id."""

    id: str  # '01/4'
    name: str  # of its function, which the notebook passes to `check`
    now: str  # what became of it: '01/3 asks for it'

    def __str__(self) -> str:
        return f"Exercise {self.id} was retired: {self.now}"


@dataclass(frozen=True)
class Lab:
    """One lab. An exercise's own minutes and points stand at its check, `@exercise("02/3", …)`."""

    number: str  # '02'
    title: str
    sentence: str  # what a student builds
    notebook: str  # its file in notebooks/
    package: str  # holds exercises/, checks/ and pictures
    minutes: int
    hardware: str
    needs: tuple[str, ...]  # the labs that come before it
    transfer: str  # module, outside of what students get, with the reference of the transfer exercise
    retired: tuple[Retired, ...] = ()

    @property
    def path(self) -> Path:
        return NOTEBOOKS / self.notebook

    @property
    def topic(self) -> str:
        """'gemm': the library that the lab teaches."""
        return self.package.split(".")[1]

    def exercises(self) -> list:
        """Its exercises (see course.exercise.Exercise) in order, registered by importing its checks."""
        from labs_helpers.course.scoreboard import SCORES

        importlib.import_module(f"{self.package}.checks")
        return SCORES.of(self.number)


ANY_MACHINE = "any; a GPU runs the same cells at full size"

LABS = (
    Lab(
        "00",
        "Start here",
        "first kernels; the two roofs of your machine",
        "00_start_here.ipynb",
        "labs_helpers.first_kernels.lab00",
        minutes=130,
        hardware=ANY_MACHINE,
        needs=(),
        transfer="tests.first_kernels.lab00.exercises.ex5_rms_norm",
    ),
    Lab(
        "01",
        "Profile a transformer",
        "a benchmark, MFU, a reader of traces, a forecast of memory, a loss scaler; what each remedy brings",
        "01_profile_a_transformer.ipynb",
        "labs_helpers.transformer.lab01",
        minutes=240,
        hardware=ANY_MACHINE,
        needs=("00",),
        transfer="tests.transformer.lab01.exercises.ex8_diagnose",
        retired=(
            Retired("01/3", "by_operation", "01/8 asks whose time it is, and `trace.by_operation` makes the table"),
        ),
    ),
    Lab(
        "02",
        "One kernel instead of three",
        "D = ReLU(A·B + C), fused, tile by tile",
        "02_fused_gemm.ipynb",
        "labs_helpers.gemm.lab02",
        minutes=170,
        hardware=ANY_MACHINE,
        needs=("00",),
        transfer="tests.gemm.lab02.exercises.ex7_silu_matmul",
    ),
    Lab(
        "03",
        "Tuning: search, prune, remember",
        "a search with a gate, a pruner and a cache key; 144 configurations, a tenth measured",
        "03_tuning.ipynb",
        "labs_helpers.gemm.lab03",
        minutes=180,
        hardware=ANY_MACHINE,
        needs=("02",),
        transfer="tests.gemm.lab03.exercises.ex7_tune_silu",
    ),
    Lab(
        "04",
        "FlashAttention-2, forward",
        "attention without its L × L matrix, causal, with the empty tiles skipped",
        "04_flash_attention_forward.ipynb",
        "labs_helpers.attention.lab04",
        minutes=165,
        hardware=ANY_MACHINE,
        needs=("02",),
        transfer="tests.attention.lab04.exercises.ex6_window_attention",
    ),
    Lab(
        "05",
        "FlashAttention-2, backward",
        "its gradients: two kernels with one writer per element, beside one with atomics",
        "05_flash_attention_backward.ipynb",
        "labs_helpers.attention.lab05",
        minutes=165,
        hardware=ANY_MACHINE,
        needs=("04",),
        transfer="tests.attention.lab05.exercises.ex5_softcap_gradients",
    ),
    Lab(
        "06",
        "MPI collectives from scratch",
        "ring all-reduce and its rivals, on practice ranks and real ones, raced against native",
        "06_mpi_collectives.ipynb",
        "labs_helpers.collectives.lab06",
        minutes=210,
        hardware="two cores; no GPU",
        needs=("00",),
        transfer="tests.collectives.lab06.exercises.ex8_recursive_halving",
    ),
    Lab(
        "07",
        "2D parallelism: data × tensor",
        "a transformer cut over a grid of ranks: shapes, slices, gradients; which layout wins over which link",
        "07_2d_parallelism.ipynb",
        "labs_helpers.tensor_parallel.lab07",
        minutes=280,
        hardware="any with an MPI; no GPU",
        needs=("01", "06"),
        transfer="tests.tensor_parallel.lab07.exercises.ex10_parallel_cross_entropy",
        retired=(Retired("07/5", "naive_collect_backward_output", "it is one slice, which the lab gives"),),
    ),
    Lab(
        "08",
        "DDP, from naive to overlapped",
        "four ways to average gradients, hooks and buckets; how much of the communication is hidden, and when it pays",
        "08_ddp.ipynb",
        "labs_helpers.data_parallel.lab08",
        minutes=240,
        hardware="two cores, or GPUs of one host",
        needs=("01", "06"),
        transfer="tests.data_parallel.lab08.exercises.ex9_top_k_mean",
    ),
    Lab(
        "09",
        "ZeRO, from 1 to 3",
        "shards, a step on them, gradients and parameters that come and go, gathered ahead; which stage a model needs",
        "09_zero.ipynb",
        "labs_helpers.data_parallel.lab09",
        minutes=290,
        hardware="two cores, or GPUs of one host",
        needs=("01", "08"),
        transfer="tests.data_parallel.lab09.exercises.ex10_hybrid_step",
    ),
)


def lab(number: str | int) -> Lab:
    """The lab of that number, '02' or '2'. ValueError, with those that there are, for another."""
    for one in LABS:
        if str(number) and one.number == str(number).zfill(2):
            return one
    raise ValueError(f"there is no lab {number!r}. There are: {', '.join(one.number for one in LABS)}")


def retired(which: str | None) -> list[Retired]:
    """The retired exercises of a lab ('01'), or the one with that id ('01/4')."""
    return [one for lab in LABS for one in lab.retired if which in (lab.number, one.id)]
