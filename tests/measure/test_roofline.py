import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.measure.roofline import Work, attainable, bound
from labs_helpers.measure.roofs import Roofs

H200 = Roofs(bandwidth=4.8e12, flops=989e12, dtype="float16")
positive = st.floats(1e-3, 1e18)


@given(flops=positive, nbytes=positive, bandwidth=positive, rate=positive)
def test_time_bound_and_roof_agree(flops, nbytes, bandwidth, rate):
    work, roofs = Work("some", flops, nbytes), Roofs(bandwidth, rate, "float16")
    least = max(work.flops / roofs.flops, work.bytes / roofs.bandwidth)  # moving and computing overlap entirely
    assert least == pytest.approx(work.flops / attainable(work.intensity, roofs))
    if not np.isclose(work.intensity, roofs.ridge):
        assert bound(work, roofs) == ("memory" if work.intensity < roofs.ridge else "compute")


def test_bounds_on_an_h200():
    assert bound(Work("matmul", 2 * 4096**3, 3 * 2 * 4096**2), H200) == "compute"
    assert bound(Work("vector", 2 * 4096**2, 2 * 4096**2), H200) == "memory"
    assert bound(Work("copy", 0, 8), H200) == "memory"
    assert bound(Work("on the ridge", H200.flops, H200.bandwidth), H200) == "compute"


@pytest.mark.parametrize(
    "flops, nbytes, word",
    [
        (-1, 8, "flops"),
        (8, 0, "bytes"),
        (8, -1, "bytes"),
        (float("nan"), 8, "flops"),
        (8, float("inf"), "bytes"),
    ],
)
def test_impossible_work_is_named(flops, nbytes, word):
    with pytest.raises(ValueError, match=f"mine: {word} is"):
        Work("mine", flops, nbytes)


def test_negative_intensity():
    with pytest.raises(ValueError, match="intensity"):
        attainable(-1, H200)
