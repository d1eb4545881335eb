"""A recorded sweep with wrong kernels in it that are faster than all right ones, to tempt a search."""

import math

from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.tuning.recorded import Recorded

WRONG = "wrong", "its error is not compared, or not as a share of ‖expected‖."
NAN = (
    "NaN",
    "every comparison with NaN is False: ask whether the error is below the tolerance, not whether it is above.",
)


class WithWrongKernels(Recorded):
    """A sweep in which some configurations take half the time of the best and give a wrong result.

    wrong: Config → what is wrong with its result: a factor, or NaN. right: those that run, with a right result.
    Results are near 1000, so that an absolute error under a relative tolerance finds none of them right.
    """

    def __init__(self, frame, kernel: str, shape: tuple[int, int, int], wrong: dict):
        super().__init__(frame, kernel, shape)
        self.wrong, self.expected = wrong, 1000 * self.expected
        self.fastest = min(map(super().time, self.rows))
        self.right = [config for config in self.rows if config not in wrong and math.isfinite(self.time(config))]

    def run(self, config):
        result = super().run(config)
        if config in self.wrong:
            result[3:6] *= self.wrong[config]
        return result

    def time(self, config):
        return 0.5 * self.fastest if config in self.wrong else super().time(config)

    def best(self):
        config = min(self.right, key=self.time)
        return config, self.time(config)

    def expect_gate(self, case: str) -> None:
        """Raises Wrong where something was timed that had not run, or was not right, or was timed twice."""
        for config in self.timed:
            if config not in self.ran:
                cause = "run(config) and the comparison come before measure(config)."
                raise Wrong(case, f"{config} was timed although its result was never looked at.", cause=cause)
            if config in self.wrong:
                kind, cause = NAN if math.isnan(self.wrong[config]) else WRONG
                found = f"{config} was timed, and its result is {kind}. It does half the work in half the time."
                raise Wrong(case, found, cause=cause)
            if config not in self.right:
                raise Wrong(case, f"{config} cannot run, and was timed")
        if len(set(self.timed)) != len(self.timed):
            raise Wrong(case, "a configuration was timed twice; one measurement each")
