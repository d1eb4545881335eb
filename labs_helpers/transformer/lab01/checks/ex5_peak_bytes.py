"""Check exercise 5 of lab 01: the peak of a training step, compared with the library's formula and with a real step."""

from __future__ import annotations

from dataclasses import replace

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, is_number, one_thread
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.counts import step_peaks
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.peak_bytes_mistakes import mistakes
from labs_helpers.transformer.setups import Setup
from labs_helpers.transformer.training_step import Training

Shape = tuple[TransformerConfig, int, int, int]  # config, batch, length, itemsize

_WORDS = TransformerConfig(50_304, layers=3, width=288, heads=6, hidden=704)
_NARROW = TransformerConfig(1024, layers=7, width=480, heads=5, hidden=112)
_HEADS = TransformerConfig(256, layers=2, width=208, heads=13, hidden=144)
SIZED = (("small", 8, 1024, 2), ("small", 1, 512, 2), ("1b", 1, 512, 2), ("xl", 1, 4096, 4), ("tiny", 2, 512, 2))
# In each case another part of the sum weighs most, so that a mistake in it shows. The numbers share few factors, so
# that no two mistakes give the same sum.
ODD: tuple[Shape, ...] = (
    (SIZES["small"], 1, 64, 2),
    (_WORDS, 7, 136, 2),
    (replace(_WORDS, tied=False), 1, 16, 4),
    (_NARROW, 1, 16, 2),
    (_NARROW, 29, 72, 4),
    (TransformerConfig(256, layers=7, width=144, heads=3, hidden=2000), 17, 56, 4),
    (TransformerConfig(256, layers=15, width=72, heads=1, hidden=56), 1, 2000, 4),
    (_HEADS, 3, 520, 2),
    (_HEADS, 3, 520, 4),
    (TransformerConfig(1024, layers=1, width=128, heads=4, hidden=32), 2, 512, 4),
    (TransformerConfig(16, layers=7, width=240, heads=2, hidden=40), 96, 24, 2),
    (TransformerConfig(3147, layers=48, width=22, heads=1, hidden=73), 1, 2905, 2),
    (TransformerConfig(20_938, layers=1, width=1024, heads=8, hidden=3553, tied=False), 9, 6555, 2),
    (TransformerConfig(57, layers=1, width=236, heads=2, hidden=67), 3, 113, 4),
    (TransformerConfig(245, layers=6, width=1824, heads=16, hidden=639), 10, 131, 4),
)
MEASURED: Shape = (SIZES["tiny"], 4, 256, 4)
WHERE = {
    "loss": "as the backward pass begins, in the loss's softmax",
    "attention": "in the last layer's softmax",
    "update": "at the update",
}


class Peak(int):
    """A correct peak. An answer may differ from it by 10%."""


def near(found, other) -> bool:
    """Return True if the answer equals a mistake's peak, or is right."""
    return abs(found - other) <= (0.1 if isinstance(other, Peak) else 0.01) * abs(other)


def told(case, found):
    shown = f"{found:,}" if isinstance(found, int) else f"{found:,.10g}"
    where = _where(case.arguments)
    return (f"the peak is {shown} bytes, expected {case.right:,} within 10%; it is {where}",)


PART = Part(lambda answer: answer, mistakes, told, near)
ADVICE = "print the parts of your sum there, and compare the largest with the table."


@exercise("01/5", "peak memory", points=15, minutes=20, reference=exercises.peak_bytes)
def peak_bytes(student):
    def call(*shape):
        answer = student(*shape)
        if not is_number(answer):
            raise Wrong("", f"returned {answer!r:.80}; return a number of bytes")
        return answer

    cases = []
    for name, *shape in SIZED:
        case = _case(f"{name}, {_text(*shape)}", (SIZES[name], *shape))
        cases.append(case._replace(line=f"{case.name}: {case.right / 1e9:.3g} GB, {_where(case.arguments)}"))
    cases += [_case(f"{_drawn(config)}, {_text(*shape)}", (config, *shape)) for config, *shape in ODD]
    cases[-1] = cases[-1]._replace(line=f"{len(ODD)} shapes in which one part weighs most: all within 10%")
    yield from judge_parts(student, call, cases, [PART], advice=ADVICE)
    name, peak = f"tiny, {_text(*MEASURED[1:])}, measured here", Peak(measured(*MEASURED))
    last = Case(name, MEASURED, peak, f"{name}: {peak / 1e6:.1f} MB")
    yield from judge_parts(student, call, [last], [PART], advice=ADVICE)


def _case(name: str, shape: Shape) -> Case:
    return Case(name, shape, Peak(max(step_peaks(*shape).values())))


def measured(config: TransformerConfig, batch: int, length: int, itemsize: int) -> int:
    """Return the most bytes alive in a training step of AdamW with foreach on the CPU, which counts every tensor."""
    with one_thread():
        training = Training(config, Setup(precision={2: "bf16", 4: "fp32"}[itemsize]), batch, length, device="cpu")
        training.step()  # creates the moments
        moments = [t for state in training.optimizer.state.values() for t in state.values()]
        states = [*moments, *training.model.parameters()]
        _, peak = peak_memory(lambda *_: training.step(), *states)
    return peak + sum(t.nbytes for t in states)


def _where(shape: Shape) -> str:
    """Return at which of the exercise's three points the peak is."""
    peaks = step_peaks(*shape)
    return WHERE[max(WHERE, key=peaks.__getitem__)]


def _text(batch: int, length: int, itemsize: int) -> str:
    return f"{batch} × {length} tokens in {'bfloat16' if itemsize == 2 else 'float32'}"


def _drawn(config: TransformerConfig) -> str:
    names = {"V": config.vocabulary, "W": config.width, "H": config.heads, "F": config.hidden}
    shape = ", ".join(f"{name} {value}" for name, value in names.items())
    return f"{config.layers} layer{'s' * (config.layers > 1)}, {shape}, {'tied' if config.tied else 'not tied'}"
