"""Tempt a search with a recorded sweep in which some wrong kernels are faster than all correct ones."""

import math

import torch

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.gemm.tuning.recorded import Recorded


def _in_turns(values: torch.Tensor) -> torch.Tensor:
    """Replace each pair of elements by the first and its negative; the sum is 0."""
    return torch.stack((values[::2], -values[::2]), 1).flatten()


# Errors of wrong kernels in a result with elements between 0.01 and 1000 and one bound per element. For each defect
# there is a gate that does not detect it.
DEFECTS = {
    "30% too large in one small element": lambda result: result.index_fill(0, torch.tensor(3), 0.013),
    "0 in one small element": lambda result: result.index_fill(0, torch.tensor(5), 0.0),
    "NaN in one element": lambda result: result.index_fill(0, torch.tensor(7), math.nan),
    "off by 1.4 times the bound in every element": lambda result: result * (1 + 1.4e-3),
    "too large and too small in turns, by the same amount": lambda result: result + 0.5 * _in_turns(result),
    "of the wrong sign in one small element": lambda result: result.index_fill(0, torch.tensor(9), -0.03),
}
ONE, ZERO, NAN, _, HALVES, _ = DEFECTS
SINGLE = "a norm, mean or maximum over all elements says nothing about one small element; compare each with its bound."
IN_FLOAT16 = (
    "the error is computed in the result's dtype, where rounding `expected` to float16 can cost as much as the bound. "
    "Compute it in float64."
)
GATES = (  # a cause, and its gate; the result is float16, as the kernel returns it
    ("nothing is compared before it is timed.", lambda result, expected, bound: True),
    (
        "every comparison with NaN is False; test whether all errors are within the bound, not whether one exceeds it.",
        lambda result, expected, bound: not ((result - expected).abs() > bound).any(),
    ),
    (
        "`expected` and `bound` are swapped: |result − expected| ≤ bound.",
        lambda result, expected, bound: ((result - bound).abs() <= expected).all(),
    ),
    (
        "abs() is missing, so a result that is too small passes.",
        lambda result, expected, bound: (result - expected <= bound).all(),
    ),
    (SINGLE, lambda result, expected, bound: (result - expected).norm() <= bound.norm()),
    (SINGLE, lambda result, expected, bound: (result - expected).abs().max() <= bound.max()),
    (SINGLE, lambda result, expected, bound: (result - expected).abs().mean() <= bound.mean()),
    (
        "errors of opposite sign cancel in a sum or a mean.",
        lambda result, expected, bound: (result - expected).mean().abs() <= bound.mean(),
    ),
    (
        "all elements must be within the bound, not any.",
        lambda result, expected, bound: ((result - expected).abs() <= bound).any(),
    ),
    (
        "torch.allclose and isclose use their own tolerances; use `bound`.",
        lambda result, expected, bound: torch.allclose(result.double(), expected),
    ),
    (
        "the limit in the comparison is wider than `bound`, the largest error allowed in each element.",
        lambda result, expected, bound: ((result - expected).abs() <= 2 * bound).all(),
    ),
    (
        "the error is absolute here, like the bound; do not divide it.",
        lambda result, expected, bound: ((result - expected).abs() / expected.abs() <= bound).all(),
    ),
    (IN_FLOAT16, lambda result, expected, bound: ((result - expected.to(result.dtype)).abs() <= bound).all()),
    (
        IN_FLOAT16,
        lambda result, expected, bound: ((result - expected.to(result.dtype)).abs() <= bound.to(result.dtype)).all(),
    ),
)


def _far_off(expected: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Return, for each element, the float16 number that is furthest off but within 0.95 of the bound.

    Many of these differ from the rounded `expected` by one float16 step more than from `expected` itself.
    """
    near = (expected + bound * torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]).half().double()
    off = (near - expected).abs()
    furthest = torch.where(off <= 0.95 * bound, off, -1).argmax(0, keepdim=True)
    return near.gather(0, furthest)[0]


ROUNDED, FAR = "each element is only rounded to float16", "no element is off by more than 0.95 of its bound"


class WithWrongKernels(Recorded):
    """A sweep in which some configurations take half the time of the best and give a wrong result.

    wrong: Config → one of DEFECTS. right: the configurations that run and give a correct result. Half of them are off
    by up to 0.95 of the bound, which a gate that is too strict rejects. Results are float16, `expected` is float64.
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
        """Return the defect of `config`, or how far off its correct result is."""
        return self.wrong.get(config) or (FAR if config.num_stages % 2 else ROUNDED)

    def _result(self, kind: str) -> torch.Tensor:
        if kind == FAR:
            return _far_off(self.expected, self.bound).half()
        return DEFECTS.get(kind, lambda result: result)(self.expected).half()

    def expect_gate(self, case: str, times: dict | None = None) -> None:
        """Raise Wrong if the search timed a configuration too early, wrongly or twice, or omitted a correct one.

        times: the times that the search returned, if any.
        """
        for config in self.unseen:
            when = "before its result was compared" if config in self.ran else "although its result was never computed"
            cause = "run(config) and the comparison come before measure(config)."
            raise Wrong(case, f"{config} was timed {when}.", cause=cause)
        for config in self.timed:
            if config not in self.wrong and math.isinf(self.time(config)):
                raise Wrong(case, f"{config} was timed although it cannot run")
        tempted = [config for config in self.timed if config in self.wrong]
        if tempted and times and all(math.isinf(times.get(config, 0)) for config in tempted):
            found = f"{tempted[0]} was timed before it was found to be wrong: it is {self.wrong[tempted[0]]}"
            raise Wrong(case, found, cause="the comparison comes before measure(config).")
        may_run = {*self.right} - {*self.timed}
        refused = [config for config in self.ran if config in may_run]
        if tempted:
            found = f"{tempted[0]} was timed, but its result is {self.wrong[tempted[0]]}. It takes half the time."
            raise Wrong(case, found, cause=self._gate())
        if refused:
            found = f"{refused[0]} was not timed, but its result is right: {self._kind(refused[0])}"
            raise Wrong(case, found, cause=self._gate())
        if len(set(self.timed)) != len(self.timed):
            raise Wrong(
                case,
                "a configuration was timed twice.",
                cause="measure(config) is called twice; keep its first result.",
            )

    def _gate(self) -> tuple[str, ...]:
        """Return the causes whose gates let exactly the timed configurations pass."""
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
