"""The table of labs, in teaching order. README, index page, set-up, commands, site and tests all read it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # the checkout; meaningless where only the package is installed
NOTEBOOKS = ROOT / "notebooks"
SOURCES = "https://github.com/tile-to-cluster/tile-to-cluster/blob/main"  # the checkout, for those who have none


@dataclass(frozen=True)
class Retired:
    """An exercise that its lab dropped. Older copies of the notebook still contain it, so its id is never reused."""

    id: str  # '01/4'
    name: str  # of its function, which the notebook passes to `check`
    now: str  # what became of it: '01/3 asks for it'

    def __str__(self) -> str:
        return f"Exercise {self.id} was retired: {self.now}"


@dataclass(frozen=True)
class Lab:
    """One lab. Its exercises declare their own minutes and points: `@exercise("02/3", …)`."""

    number: str  # '02'
    title: str
    sentence: str  # what the student builds
    notebook: str  # its file in notebooks/
    package: str  # the package with its exercises/, checks/ and pictures
    minutes: int
    hardware: str  # what it runs on, and what full size takes
    needs: tuple[str, ...]  # the labs to do first
    transfer: str  # the module with the transfer exercise's reference, which students do not get
    retired: tuple[Retired, ...] = ()

    @property
    def path(self) -> Path:
        return NOTEBOOKS / self.notebook

    @property
    def topic(self) -> str:
        """The library that the lab teaches, such as 'gemm'."""
        return self.package.split(".")[1]

    def exercises(self) -> list:
        """Return the lab's exercises (course.exercise.Exercise) in order; importing its checks registers them."""
        from labs_helpers.course.scoreboard import SCORES

        importlib.import_module(f"{self.package}.checks")
        return SCORES.of(self.number)


ANY_MACHINE = "any machine; one GPU for full size"
TWO_CORES = "two CPU cores; several GPUs for full size"

LABS = (
    Lab(
        "00",
        "Start here",
        "your first kernels, and the two roofs of your machine",
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
        "a benchmark, a trace reader, a memory forecast and a loss scaler; you measure what each remedy gains",
        "01_profile_a_transformer.ipynb",
        "labs_helpers.transformer.lab01",
        minutes=240,
        hardware=ANY_MACHINE,
        needs=("00",),
        transfer="tests.transformer.lab01.exercises.ex8_diagnose",
        retired=(Retired("01/3", "by_operation", "01/8 covers it, and `trace.by_operation` builds the table"),),
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
        "a search that measures a tenth of 144 configurations: its correctness gate, pruner and cache key",
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
        "causal attention that never stores the L × L matrix and skips the masked tiles",
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
        "attention's gradients: two kernels without atomics, raced against one with them",
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
        "ring all-reduce and its rivals, raced against the MPI library's own",
        "06_mpi_collectives.ipynb",
        "labs_helpers.collectives.lab06",
        minutes=210,
        hardware="two CPU cores",
        needs=("00",),
        transfer="tests.collectives.lab06.exercises.ex8_recursive_halving",
    ),
    Lab(
        "07",
        "2D parallelism: data × tensor",
        "a transformer split over a grid of ranks; you predict which layout wins over which link",
        "07_2d_parallelism.ipynb",
        "labs_helpers.tensor_parallel.lab07",
        minutes=280,
        hardware="two CPU cores",
        needs=("01", "06"),
        transfer="tests.tensor_parallel.lab07.exercises.ex10_parallel_cross_entropy",
        retired=(
            Retired("07/5", "naive_collect_backward_output", "it was a single slice, and the lab now provides it"),
        ),
    ),
    Lab(
        "08",
        "DDP, from naive to overlapped",
        "four ways to average gradients; you measure how much communication each hides, and when that pays",
        "08_ddp.ipynb",
        "labs_helpers.data_parallel.lab08",
        minutes=240,
        hardware=TWO_CORES,
        needs=("01", "06"),
        transfer="tests.data_parallel.lab08.exercises.ex9_top_k_mean",
    ),
    Lab(
        "09",
        "ZeRO, from 1 to 3",
        "sharded optimizer, gradients and parameters; you work out which stage a model needs",
        "09_zero.ipynb",
        "labs_helpers.data_parallel.lab09",
        minutes=290,
        hardware=TWO_CORES,
        needs=("01", "08"),
        transfer="tests.data_parallel.lab09.exercises.ex10_hybrid_step",
    ),
    Lab(
        "10",
        "Pipeline parallelism, and three dimensions together",
        "pipeline schedules, from naive to your own; you measure their bubbles, and combine three kinds of parallelism",
        "10_pipeline_parallelism.ipynb",
        "labs_helpers.pipeline.lab10",
        minutes=290,
        hardware="two CPU cores",
        needs=("07", "08"),
        transfer="tests.pipeline.lab10.exercises.ex9_unequal_order",
    ),
    Lab(
        "11",
        "The clinic: sick training jobs",
        "the tools to diagnose slow, stuck and wrong jobs, rules that name the cause, and three cures",
        "11_the_clinic.ipynb",
        "labs_helpers.clinic.lab11",
        minutes=270,
        hardware=TWO_CORES,
        needs=("01", "08"),
        transfer="tests.clinic.lab11.exercises.ex9_smallest_change",
    ),
    Lab(
        "12",
        "Quantized weights, and kernels that read them",
        "int8 and int4 weights, kernels that dequantize in registers, and what bytes and rounding really change",
        "12_quantized_weights.ipynb",
        "labs_helpers.quantization.lab12",
        minutes=270,
        hardware=ANY_MACHINE,
        needs=("02", "04"),
        transfer="tests.quantization.lab12.exercises.ex9_int8_cache_attention",
    ),
    Lab(
        "13",
        "Serving, from one token to a busy server",
        "a KV cache in blocks, in-flight batching, streamed text and exact speculation, behind a real server",
        "13_serving.ipynb",
        "labs_helpers.serving.lab13",
        minutes=310,
        hardware=ANY_MACHINE,
        needs=("04", "12"),
        transfer="tests.serving.lab13.exercises.ex11_conversation_tree",
    ),
)


def lab(number: str | int) -> Lab:
    """Return the lab with that number, '02' or '2'. ValueError lists the valid numbers."""
    for one in LABS:
        if str(number) and one.number == str(number).zfill(2):
            return one
    raise ValueError(f"there is no lab {number!r}. The labs are: {', '.join(one.number for one in LABS)}")


def retired(which: str | None) -> list[Retired]:
    """Return the retired exercises of a lab ('01'), or the one with that id ('01/4')."""
    return [one for lab in LABS for one in lab.retired if which in (lab.number, one.id)]
