"""Test sampling with parameters per row: the distribution, and that the kernel chooses the same tokens."""

import pytest
import torch

from labs_helpers.compile.ahead_of_time import compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.measure.machine import this_machine
from labs_helpers.serving.kernels.choose import ChooseLaunch
from labs_helpers.serving.sampling import choose, probabilities
from labs_helpers.transformer.kernels.sample import MOST_TOKENS

HERE = this_machine()
# (temperature, top_k, top_p) of each row
ROWS = [(0.0, 0, 1.0), (1.0, 0, 1.0), (0.3, 4, 1.0), (2.0, 900, 0.7), (1.0, 0, 0.5), (0.7, 3, 0.9), (1.0, 1, 1e-6)]


def columns(rows=ROWS):
    temperature, top_k, top_p = zip(*rows, strict=True)
    return torch.tensor(temperature), torch.tensor(top_k, dtype=torch.int32), torch.tensor(top_p)


def kept(logits, temperature, top_k, top_p):
    """Return one row's distribution, token by token."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    p = torch.softmax(logits.double() / temperature, 0)
    least = logits.sort(descending=True).values[min(top_k or len(logits), len(logits)) - 1]
    p = torch.where(logits >= least, p, 0)
    p = p / p.sum()
    larger = torch.stack([p[logits > logit].sum() for logit in logits])
    p = torch.where(larger < top_p, p, 0)
    return p / p.sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_the_distribution_is_that_of_its_definition(dtype):
    logits = (2 * torch.randn(len(ROWS), 50, generator=torch.Generator().manual_seed(1))).to(dtype)
    logits[3, 10:20] = logits[3, 10]  # ties
    found = probabilities(logits, *columns())
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    for row, how in enumerate(ROWS):
        torch.testing.assert_close(found[row].double(), kept(logits[row], *how), rtol=1e-5, atol=1e-7)


def test_ties_of_the_last_kept_token_stay():
    logits = torch.tensor([[3.0, 1.0, 2.0, 2.0, 0.0]] * 2)
    found = probabilities(logits, torch.tensor([1.0, 1.0]), torch.tensor([2, 0]), torch.tensor([1.0, 0.7]))
    assert (found > 0).tolist() == [[True, False, True, True, False]] * 2


@pytest.mark.parametrize("vocabulary", [5, 128, 1000])
def test_the_kernel_chooses_the_same_tokens(vocabulary):
    generator = torch.Generator().manual_seed(vocabulary)
    rows = ROWS * 6
    logits = 3 * torch.randn(len(rows), vocabulary, generator=generator)
    u = torch.rand(len(rows), generator=generator)
    expected = choose(logits, u, *columns(rows))
    given = [x.to(HERE.device) for x in (logits, u, *columns(rows))]
    chosen = torch.full((len(rows) + 1,), -1, device=HERE.device)
    launch = ChooseLaunch(vocabulary)
    launch(*given, chosen[:-1])
    assert chosen.tolist() == [*expected.tolist(), -1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_kernel_orders_floats_of_each_size(dtype):
    generator, rows = torch.Generator().manual_seed(7), ROWS * 12
    logits = torch.randn(len(rows), 40, generator=generator).mul(4).round() / 4  # ties, and both zeros
    logits[:, :2] = torch.tensor([0.0, -0.0])
    u = torch.rand(len(rows), generator=generator)
    top_k = torch.randint(0, 42, (len(rows),), generator=generator, dtype=torch.int32)
    temperature, _, top_p = columns(rows)
    given = [x.to(HERE.device) for x in (logits.to(dtype), u, temperature, top_k, top_p)]
    chosen = torch.full((len(rows),), -1, device=HERE.device)
    ChooseLaunch(40)(*given, chosen)
    assert chosen.tolist() == choose(logits.to(dtype), u, temperature, top_k, top_p).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_minus_zero_ties_with_zero(dtype):
    logits = torch.tensor([[-0.0, 1.0, 0.0, -1.0]] * 8, dtype=dtype)
    u = torch.arange(8) / 8
    how = torch.ones(8), torch.full((8,), 2, dtype=torch.int32), torch.ones(8)
    chosen = torch.full((8,), -1, device=HERE.device)
    ChooseLaunch(4)(*(x.to(HERE.device) for x in (logits, u, *how)), chosen)
    assert chosen.tolist() == choose(logits, u, *how).tolist() and set(chosen.tolist()) == {0, 1, 2}


def test_a_vocabulary_that_does_not_fit():
    with pytest.raises(ValueError, match="the sampling kernel takes"):
        ChooseLaunch(MOST_TOKENS + 1)


def test_it_builds_for_gpus():
    with record_launches(run=False) as launches:
        ChooseLaunch(32_000)(
            torch.zeros(2, 32_000).bfloat16(), *(torch.zeros(2, dtype=t) for t in (torch.float32,) * 2),
            torch.zeros(2, dtype=torch.int32), torch.zeros(2), torch.zeros(2, dtype=torch.int64),
        )  # fmt: skip
    for target in ("sm_80", "sm_90", "gfx942"):
        (built,) = compile_all([job(launches[0], target)], timeout=300)
        assert built.assembly  # a row of 32,000 takes all registers of 32 warps
