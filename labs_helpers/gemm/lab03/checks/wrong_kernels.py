"""A recorded sweep with wrong kernels in it that are faster than all right ones, to tempt a search."""

import math

import torch

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.gemm.tuning.recorded import Recorded


def _in_turns(values: torch.Tensor) -> torch.Tensor:
    """Each even element, and minus it in the place behind it: their sum is 0."""
    return torch.stack((values[::2], -values[::2]), 1).flatten()


# What a wrong kernel may have done to a result whose elements lie between 0.01 and 1000, with a bound for each. Each
# defect is one that some gate does not see.
DEFECTS = {
    "30% too large in one small element": lambda result: result.index_fill(0, torch.tensor(3), 0.013),
    "0 in one small element": lambda result: result.index_fill(0, torch.tensor(5), 0.0),
    "NaN in one element": lambda result: result.index_fill(0, torch.tensor(7), math.nan),
    "too far off everywhere, by less than half of what it may be": lambda result: result * (1 + 1.4e-3),
    "too large and too small in turns, by as much": lambda result: result + 0.5 * _in_turns(result),
    "its sign turned in one small element": lambda result: result.index_fill(0, torch.tensor(9), -0.03),
}
ONE, ZERO, NAN, _, HALVES, _ = DEFECTS
SINGLE = "a norm, a mean or a maximum over all says nothing of one small element: hold each against its own bound."
IN_FLOAT16 = (
    "the error is taken in the result's dtype: float16 rounds `expected`, too, by as much as the bound. Take it "
    "in float64."
)
GATES = (  # a sentence, and the gate that it speaks of; the result is a float16, as the kernel gives it
    ("nothing is compared before it is timed.", lambda result, expected, bound: True),
    (
        "every comparison with NaN is False: ask whether all errors are within the bound, not whether one is above.",
        lambda result, expected, bound: not ((result - expected).abs() > bound).any(),
    ),
    (
        "`expected` and `bound` have changed places: |result − expected| ≤ bound.",
        lambda result, expected, bound: ((result - bound).abs() <= expected).all(),
    ),
    ("abs() is missing: what is too small passes.", lambda result, expected, bound: (result - expected <= bound).all()),
    (SINGLE, lambda result, expected, bound: (result - expected).norm() <= bound.norm()),
    (SINGLE, lambda result, expected, bound: (result - expected).abs().max() <= bound.max()),
    (SINGLE, lambda result, expected, bound: (result - expected).abs().mean() <= bound.mean()),
    (
        "in a sum or a mean with signs, what is too large hides what is too small.",
        lambda result, expected, bound: (result - expected).mean().abs() <= bound.mean(),
    ),
    (
        "all elements have to be within, not any.",
        lambda result, expected, bound: ((result - expected).abs() <= bound).any(),
    ),
    (
        "torch.allclose and isclose have tolerances of their own; `bound` is the one to use.",
        lambda result, expected, bound: torch.allclose(result.double(), expected),
    ),
    (
        "what is compared with is wider than `bound`, the most that each element may be off.",
        lambda result, expected, bound: ((result - expected).abs() <= 2 * bound).all(),
    ),
    (
        "an error is absolute here, as the bound is: do not divide it.",
        lambda result, expected, bound: ((result - expected).abs() / expected.abs() <= bound).all(),
    ),
    (IN_FLOAT16, lambda result, expected, bound: ((result - expected.to(result.dtype)).abs() <= bound).all()),
    (
        IN_FLOAT16,
        lambda result, expected, bound: ((result - expected.to(result.dtype)).abs() <= bound.to(result.dtype)).all(),
    ),
)


def _far_off(expected: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Of the float16 numbers around each element the one that is furthest off, within 0.95 of its bound: many are a
    step of float16's further from the rounded `expected` than from `expected` itself."""
    near = (expected + bound * torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]).half().double()
    off = (near - expected).abs()
    furthest = torch.where(off <= 0.95 * bound, off, -1).argmax(0, keepdim=True)
    return near.gather(0, furthest)[0]


ROUNDED, FAR = "each element is off by what float16 rounds", "no element is off by more than 0.95 of its bound"


class WithWrongKernels(Recorded):
    """A sweep in which some configurations take half the time of the best and give a wrong result.

    wrong: Config → one of DEFECTS. right: the configurations that run, with a right result: half of them as far off
    as 0.95 of the bound, which a stricter gate refuses. Results are float16, `expected` is float64.
    """

    def __init__(self, frame, kernel: str, shape: tuple[int, int, int], wrong: dict):
        super().__init__(frame, kernel, shape)
        self.wrong, self.expected = wrong, 10 ** torch.linspace(-2, 3, 512, dtype=torch.float64)
        self.bound = 1e-3 * self.expected
        self.unseen: list = []  # timed before they ran
        self._results: dict = {}
        self.fastest = min(map(super().time, self.rows))
        self.right = [config for config in self.rows if config not in wrong and math.isfinite(self.time(config))]

    def run(self, config):
        self._start(config)
        kind = self._kind(config)
        if kind not in self._results:
            self._results[kind] = self._result(kind)
        return self._results[kind].clone()

    def measure(self, config):
        if config not in self.ran:
            self.unseen.append(config)
        return super().measure(config)

    def time(self, config):
        return 0.5 * self.fastest if config in self.wrong else super().time(config)

    def best(self):
        config = min(self.right, key=self.time)
        return config, self.time(config)

    def _kind(self, config) -> str:
        """Its defect, or how far off the right result of `config` is."""
        return self.wrong.get(config) or (FAR if config.num_stages % 2 else ROUNDED)

    def _result(self, kind: str) -> torch.Tensor:
        if kind == FAR:
            return _far_off(self.expected, self.bound).half()
        return DEFECTS.get(kind, lambda result: result)(self.expected).half()

    def expect_gate(self, case: str, times: dict | None = None) -> None:
        """Raises Wrong where something was timed that had not run, or was not right, or was timed twice, and where
        something right was not timed although it ran. times: what the search says of them."""
        for config in self.unseen:
            when = (
                "before its result was looked at" if config in self.ran else "although its result was never looked at"
            )
            cause = "run(config) and the comparison come before measure(config)."
            raise Wrong(case, f"{config} was timed {when}.", cause=cause)
        for config in self.timed:
            if config not in self.wrong and math.isinf(self.time(config)):
                raise Wrong(case, f"{config} cannot run, and was timed")
        tempted = [config for config in self.timed if config in self.wrong]
        if tempted and times and all(math.isinf(times.get(config, 0)) for config in tempted):
            found = f"{tempted[0]} was timed, and only then found wrong: it is {self.wrong[tempted[0]]}"
            raise Wrong(case, found, cause="the comparison comes before measure(config).")
        may_run = {*self.right} - {*self.timed}
        refused = [config for config in self.ran if config in may_run]
        if tempted:
            found = f"{tempted[0]} was timed, and its result is {self.wrong[tempted[0]]}. It takes half the time."
            raise Wrong(case, found, cause=self._gate())
        if refused:
            found = f"{refused[0]} was not timed, and its result is right: {self._kind(refused[0])}"
            raise Wrong(case, found, cause=self._gate())
        if len(set(self.timed)) != len(self.timed):
            raise Wrong(
                case, "a configuration was timed twice.", cause="measure(config) is called again; keep its number."
            )

    def _gate(self) -> tuple[str, ...]:
        """The sentences of the gates that let pass just what was timed, of all that ran."""
        runs, timed = {*self.right, *self.wrong}, set(self.timed)
        ran = {self._kind(config): config in timed for config in self.ran if config in runs}
        results = {kind: self._result(kind) for kind in ran}
        return likely(
            (
                (sentence, {kind: bool(gate(r, self.expected, self.bound)) for kind, r in results.items()})
                for sentence, gate in GATES
            ),
            ran.__eq__,
        )
