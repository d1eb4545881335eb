"""NaN around inputs, canaries around outputs."""

import pytest
import torch

from labs_helpers.course.verdict.surroundings import Guarded, surrounded


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_surrounded_keeps_the_values_between_nan(dtype):
    x = torch.randn(5, 7).to(dtype)
    view = surrounded(x)
    assert torch.equal(view, x) and not view.is_contiguous()
    whole = torch.as_strided(view, (view.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
    assert int(whole.isnan().sum()) == whole.numel() - x.numel()


def test_integers_cannot_be_surrounded():
    with pytest.raises(TypeError, match="int64"):
        surrounded(torch.arange(3))


@pytest.mark.parametrize(
    "make",
    [lambda: torch.empty(3, 4), lambda: torch.empty_like(torch.ones(3, 4)), lambda: torch.ones(3, 4).new_empty((3, 4))],
)
def test_a_new_tensor_is_full_of_nan_between_canaries(make):
    with Guarded() as guard:
        made = make()
    assert made.shape == (3, 4) and made.is_contiguous() and made.isnan().all() and guard.overwritten() == 0
    torch.as_strided(made, (1,), (1,), made.storage_offset() + 12)[0] = 1.0
    torch.as_strided(made, (1,), (1,), made.storage_offset() - 1)[0] = 1.0
    assert guard.overwritten() == 2


def test_zeros_stay_zeros_and_integers_are_left_alone():
    with Guarded() as guard:
        assert not torch.zeros(4).any() and torch.empty(4, dtype=torch.int32).dtype == torch.int32
    assert len(guard.buffers) == 1
