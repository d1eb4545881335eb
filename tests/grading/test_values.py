"""Test values that leave a jail as text: they return unchanged, foreign text is refused, and near values count as
equal."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from labs_helpers.grading.hidden.values import TOLERANCES, Near, NoValue, difference, read, written

few = settings(max_examples=25)

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
DTYPES += [torch.float32, torch.float64]
tensors = st.builds(
    lambda x, dtype: torch.from_numpy(x).to(dtype),
    arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, min_side=0, max_side=5), elements=st.integers(0, 1)),
    st.sampled_from(DTYPES),
)
numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
nested = st.recursive(
    numbers | tensors,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
json_like = st.recursive(
    numbers,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["float", "dict", "near", "within", "dtype", "shape", "bytes"]), inner)
    ),
    max_leaves=10,
)


def through(value):
    return read(json.loads(json.dumps(written(value))))


@few
@given(nested)
def test_what_is_written_is_read_again(value):
    once = through(value)
    assert difference(once, through(value)) == ""
    assert json.dumps(written(once)) == json.dumps(written(value))


@few
@given(arrays.arrays(np.float64, 5, elements=st.floats()))
def test_every_bit_of_a_float_survives_nan_and_inf_included(x):
    assert through(torch.from_numpy(x)).view(torch.int64).equal(torch.from_numpy(x).view(torch.int64))
    assert all(np.isnan(a) if np.isnan(b) else a == b for a, b in zip(through(x.tolist()), x.tolist(), strict=True))


@few
@given(json_like)
def test_forged_text_is_a_value_or_refused(text):
    try:
        value = read(text)
    except NoValue:
        return
    assert difference(value, through([1.0, torch.ones(3), {"a": 1}]))


@pytest.mark.parametrize(
    "forged",
    [
        {"dtype": "float32", "shape": [2**40], "bytes": ""},
        {"dtype": "float32", "shape": [0, 2**62, 2**62], "bytes": ""},
        {"dtype": "float32", "shape": [-1, -1], "bytes": "AAAAAA=="},
        {"dtype": "float32", "shape": [1] * 200, "bytes": "AAAAAA=="},
        {"dtype": "float32", "shape": ["1"], "bytes": "AAAAAA=="},
        {"dtype": "float32", "shape": [2], "bytes": "AAAAAA=="},
        {"dtype": "object", "shape": [1], "bytes": "AAAAAA=="},
        {"dtype": "float32", "shape": [1], "bytes": "AAAA AA=="},
        {"float": "0x1p99999"},
        {"float": 1.0},
        {"dict": [[{"dict": []}, 1]]},
        {"near": {"float": "0x1p0"}},
        {},
        1.5,
    ],
    ids=str,
)
def test_forged_text_is_refused(forged):
    with pytest.raises(NoValue):
        read(forged)


def test_what_has_no_values_is_told_in_one_way():
    endless = []
    endless.append(endless)
    wrong = [object(), 1j, b"x", {1, 2}, endless, np.array(["a"]), np.array([None]), np.arange(3, dtype=">i4")]
    for value in [
        *wrong,
        torch.zeros(2).to_sparse(),
        torch.zeros(2, device="meta"),
        torch.zeros(2, dtype=torch.cfloat),
    ]:
        with pytest.raises(NoValue):
            written(value)


@few
@given(st.sampled_from(list(TOLERANCES)), st.integers(0, 7), st.booleans())
def test_a_tensor_may_be_off_by_its_tolerance_of_the_largest_and_no_more(kind, place, above):
    dtype = torch.float64 if kind == "float64" else torch.float32
    expected = torch.linspace(-2, 1, 8, dtype=dtype)  # 2 is the largest
    found, tolerance = expected.clone(), TOLERANCES["float64" if kind == "float64" else "float32"]
    found[place] += (1.2 if above else 0.8) * 2 * tolerance
    assert bool(difference(found, expected)) == above


@few
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_not_finite_is_equal_to_itself_alone(number, strange):
    assert difference(strange, strange) == ""
    assert difference(number, strange) and difference(strange, number)
    both = torch.tensor([1.0, strange])
    assert difference(both, both.clone()) == "" and difference(torch.tensor([1.0, 2.0]), both)
    assert difference(torch.tensor([1.0, -math.inf]), torch.tensor([1.0, math.inf]))


def test_what_differs_and_what_does_not():
    for found, expected in ((3, 3.0), (np.float32(0.1), 0.1), ((1, [2]), [1, (2,)]), (True, 1), (torch.ones(1), 1.0)):
        assert difference(through(found), through(expected)) == ""
    assert difference(through({(1, 2): 3, np.int64(4): 5}), through({4: 5, (1, 2): 3})) == ""
    assert difference(torch.ones(2, 3), torch.ones(3, 2)) == "another shape"
    assert difference(torch.ones(0, 3), torch.ones(0, 5)) == "another shape"
    for found, expected in ((2**53 + 1, 2**53), (10**400, 10**400 + 1), (10**400, 1.0), ("1", 1), (None, 0), ([1], 1)):
        assert difference(through(found), through(expected)), (found, expected)
    for found, expected in (([1, 2], [1]), ({"a": 1}, {"b": 1}), ({}, []), ("a", "b"), (torch.ones(2), [1, 1])):
        assert difference(through(found), through(expected)), (found, expected)


@few
@given(st.floats(1e-3, 1e12), st.floats(-0.3, 0.3))
def test_a_number_that_may_be_near_is_as_near_as_the_reference_says(value, off):
    found = through(Near(value * (1 + off), 9.0))  # what the answer says of it does not count
    assert bool(difference(found, through(Near(value, 0.1)))) == (abs(found.value - value) > 0.1 * value)
    assert difference(value, through(Near(value, 0.1)))
