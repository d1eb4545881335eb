import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.measure.roofline import Work, attainable, bound, elementwise_work, matmul_work, predicted_ms
from labs_helpers.measure.roofs import Roofs

H200 = Roofs(bandwidth=4.8e12, flops=989e12, dtype="float16")
positive = st.floats(1e-3, 1e18)


def test_matmul_work_is_what_three_loops_do():
    M, N, K = 5, 7, 3
    operations = sum(2 for _ in np.ndindex(M, N, K))
    moved = sum(np.empty(shape, np.float16).nbytes for shape in ((M, K), (K, N), (M, N)))
    work = matmul_work(M, N, K, itemsize=2)
    assert (work.flops, work.bytes) == (operations, moved)


def test_elementwise_work_of_a_float32_add():
    work = elementwise_work(1000, 4, reads=2, name="add")
    assert (work.name, work.flops, work.bytes) == ("add", 1000, 12000)
    assert work.intensity == pytest.approx(1 / 12)


@given(flops=positive, nbytes=positive, bandwidth=positive, rate=positive)
def test_time_bound_and_roof_agree(flops, nbytes, bandwidth, rate):
    work, roofs = Work("some", flops, nbytes), Roofs(bandwidth, rate, "float16")
    assert predicted_ms(work, roofs) == pytest.approx(work.flops / attainable(work.intensity, roofs) * 1e3)
    if not np.isclose(work.intensity, roofs.ridge):
        assert bound(work, roofs) == ("memory" if work.intensity < roofs.ridge else "compute")


def test_bounds_on_an_h200():
    assert bound(matmul_work(4096, 4096, 4096, 2), H200) == "compute"
    assert bound(matmul_work(4096, 1, 4096, 2), H200) == "memory"
    assert bound(Work("copy", 0, 8), H200) == "memory"
    assert bound(Work("on the ridge", H200.flops, H200.bandwidth), H200) == "compute"
    assert predicted_ms(Work("copy", 0, 4.8e9), H200) == pytest.approx(1)


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
