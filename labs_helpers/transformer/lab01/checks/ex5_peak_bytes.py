"""Exercise 5 of lab 01: the peak of a training step, held against the library's formula and a step made here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, is_number, likely, likely_in_all, one_thread
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.counts import step_peaks
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.peak_bytes_mistakes import mistakes, parts, points
from labs_helpers.transformer.setups import Setup
from labs_helpers.transformer.training_step import Training

Shape = tuple[TransformerConfig, int, int, int]  # config, batch, length, itemsize

_WORDS = TransformerConfig(50_304, layers=3, width=288, heads=6, hidden=704)
_NARROW = TransformerConfig(1024, layers=7, width=480, heads=5, hidden=112)
_HEADS = TransformerConfig(256, layers=2, width=208, heads=13, hidden=144)
SIZED = (("small", 8, 1024, 2), ("small", 1, 512, 2), ("1b", 1, 512, 2), ("xl", 1, 4096, 4), ("tiny", 2, 512, 2))
# In each of them one part of the sum weighs most: a mistake there shows. Their numbers have few factors in common, so
# that no mistake looks like another.
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
)
MEASURED: Shape = (SIZES["tiny"], 4, 256, 4)
WHERE = {
    "loss": "as the backward pass begins, in the loss's softmax",
    "attention": "in the last layer's softmax",
    "update": "at the update",
}


@exercise("01/5", "peak memory", points=15, minutes=20, reference=exercises.peak_bytes)
def peak_bytes(student):
    named = {f"{name}, {_text(*shape)}": (SIZES[name], *shape) for name, *shape in SIZED}
    odd = {f"{_drawn(config)}, {_text(*shape)}": (config, *shape) for config, *shape in ODD}
    shapes = named | odd
    answers = {case: _answer(case, student, shape) for case, shape in shapes.items()}
    peaks = {case: step_peaks(*shape) for case, shape in shapes.items()}
    wrong = [case for case, found in answers.items() if not _near(found, max(peaks[case].values()))]
    # First a case that has a cause.
    causes = {case: _cause(case, shapes, answers, wrong) for case in wrong}
    for case in sorted(wrong, key=lambda case: not causes[case]):
        _expect(case, answers[case], max(peaks[case].values()), peaks[case], causes[case])
    for case in named:
        yield f"{case}: {answers[case] / 1e9:.3g} GB, {_where(peaks[case])}"
    yield f"{len(odd)} shapes in which one part weighs most: all within 10%"
    case, peak, answer = f"tiny, {_text(*MEASURED[1:])}, measured here", measured(*MEASURED), student(*MEASURED)
    _expect(case, answer, peak, step_peaks(*MEASURED))
    yield f"{case}: {peak / 1e6:.1f} MB, and you say {answer / 1e6:.1f} MB"


def measured(config: TransformerConfig, batch: int, length: int, itemsize: int) -> int:
    """The most bytes alive in a training step of AdamW with foreach, on the CPU: every tensor is counted."""
    with one_thread():
        training = Training(config, Setup(precision={2: "bf16", 4: "fp32"}[itemsize]), batch, length, device="cpu")
        training.step()  # makes the moments
        moments = [t for state in training.optimizer.state.values() for t in state.values()]
        states = [*moments, *training.model.parameters()]
        _, peak = peak_memory(lambda *_: training.step(), *states)
    return peak + sum(t.nbytes for t in states)


def _answer(case: str, student, shape: Shape):
    try:
        return student(*shape)
    except Exception as error:
        raise describe_error(student, error, case) from error


def _cause(case: str, shapes: dict[str, Shape], answers: dict, wrong: list[str]) -> tuple[str, ...]:
    """The mistakes that give all answers; where none does, the one that gives this one to four digits, and what is
    right where the answer is."""
    found = list(answers.values())
    if not all(map(is_number, found)):
        return ()
    every = (mistakes(*shape) for shape in shapes.values())
    fits = likely_in_all(every, found, lambda answer, value: _near(answer, value, 0.01))
    # What is right for another point of the step comes of anything that makes this one too small.
    if fits or any(_near(answers[case], value, 1e-4) for value in points(parts(*shapes[case])).values()):
        return fits
    passed = [(mistakes(*shapes[one]), partial(_near, answers[one])) for one in shapes if one not in wrong]
    alone = likely(still_possible(mistakes(*shapes[case]), passed), lambda value: _near(answers[case], value, 1e-4))
    return alone if len(alone) == 1 else ()


def _expect(case: str, found, peak: int, peaks: dict[str, int], causes: tuple[str, ...] = ()) -> None:
    if _near(found, peak):
        return
    if not is_number(found):
        raise Wrong(case, f"returned {found!r:.80}; a number of bytes is asked for")
    shown = f"{found:,}" if isinstance(found, int) else f"{found:,.10g}"
    raise Wrong(
        case,
        f"the peak is {shown} bytes, expected {peak:,} within 10%; it is {_where(peaks)}",
        cause=causes,
        advice="print the parts of your sum there, and hold the largest against the table.",
    )


def _where(peaks: dict[str, int]) -> str:
    """At which of the exercise's three points."""
    return WHERE[max(WHERE, key=peaks.__getitem__)]


def _near(found, value: float, within: float = 0.1) -> bool:
    return is_number(found) and abs(found - value) <= within * abs(value)


def _text(batch: int, length: int, itemsize: int) -> str:
    return f"{batch} × {length} tokens in {'bfloat16' if itemsize == 2 else 'float32'}"


def _drawn(config: TransformerConfig) -> str:
    names = {"V": config.vocabulary, "W": config.width, "H": config.heads, "F": config.hidden}
    shape = ", ".join(f"{name} {value}" for name, value in names.items())
    return f"{config.layers} layer{'s' * (config.layers > 1)}, {shape}, {'tied' if config.tied else 'not tied'}"
