"""Test compressed gradients on practice ranks: their values, their bytes, and the effect of error feedback."""

import pytest
import torch
from torch import nn

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.data_parallel import BucketedDDP, FlatDDP
from labs_helpers.data_parallel.compression.int8 import Int8, dequantise, quantise
from labs_helpers.data_parallel.compression.packing import pack, unpack
from labs_helpers.data_parallel.compression.power_sgd import PowerSGD
from labs_helpers.data_parallel.compression.top_k import TopK
from labs_helpers.data_parallel.ddp.hook import average
from labs_helpers.practice.groups import practice_groups

ROWS, COLUMNS = 6, 8
HOOKS = {"top-k": TopK, "int8": Int8, "PowerSGD": PowerSGD}


def exchange(hook, gradients, wrapper=FlatDDP, **options):
    """Return, per rank, the averaged gradients of each step, and the wrapper.

    gradients[step][rank]: (ROWS, COLUMNS), followed by a bias (ROWS,).
    """

    def on_rank(comm):
        model = nn.Linear(COLUMNS, ROWS).to(gradients.dtype)
        ddp = wrapper(model, PracticeCommunication(comm), hook=hook(), **options)
        ddp.group.reset()
        found = []
        for of_step in gradients:
            ddp.zero_grad()
            mine = of_step[comm.rank]
            ((model.weight * mine[:, :COLUMNS]).sum() + (model.bias * mine[:, COLUMNS]).sum()).backward()
            ddp.finish()
            found.append(torch.cat([model.weight.grad, model.bias.grad[:, None]], 1).clone())
        return torch.stack(found), ddp

    return practice_groups(on_rank, gradients.shape[1]).results


def random(steps, ranks, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(steps, ranks, ROWS, COLUMNS + 1, generator=generator).to(dtype)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("wrapper", [FlatDDP, BucketedDDP])
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
def test_all_ranks_get_the_same_and_with_feedback_nothing_is_lost(hook, feedback, wrapper, ranks):
    given = random(5, ranks)
    results = exchange(lambda: HOOKS[hook](error_feedback=feedback), given, wrapper)
    for found, _ in results:
        assert torch.equal(found, results[0][0])
    errors = [ddp.hook.errors for _, ddp in results]
    if not feedback:
        assert not any(errors)
        return
    # What has arrived, and what is still owed by the ranks, is all that they had.
    (arrived, ddp), shape = results[0], (ROWS, COLUMNS)
    for bucket in range(len(ddp.buckets)):
        owed = [list(of_rank.values())[bucket] for of_rank in errors]
        assert max(x.abs().max() for x in owed) > 0
    owed = torch.stack([torch.cat([bucket[key] for key in bucket]) for bucket in errors]).mean(0)
    bias, weight = owed.split([ROWS, ROWS * COLUMNS])  # the last parameter is first in a bucket
    total = arrived.sum(0) + torch.cat([weight.view(shape), bias[:, None]], 1)
    torch.testing.assert_close(total, given.mean(1).sum(0), rtol=0, atol=1e-5)


def test_top_k_sends_the_largest_of_each_rank():
    given = random(1, 3)
    found = exchange(lambda: TopK(0.1, error_feedback=False), given)[0][0][0]
    expected = torch.zeros(ROWS, COLUMNS + 1)
    for mine in given[0]:
        large = mine.abs() >= mine.abs().flatten().sort(descending=True).values[4]
        expected += torch.where(large, mine, 0) / 3
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)
    everything = exchange(lambda: TopK(1.0), given)[0][0][0]
    torch.testing.assert_close(everything, given[0].mean(0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("chunk, other_than_0", [(None, 13), (4, 25)])
def test_int8_rounds_to_its_chunks_scale(chunk, other_than_0):
    """A large number rounds numbers below 100 / 254 to 0, in all of x or only in its chunk. 4 of the 30 are 0."""
    x = torch.randn(30, generator=torch.Generator().manual_seed(0))
    x[7], x[20:24] = 100, 0
    scales, numbers = quantise(x, chunk or 30)
    found = dequantise([scales, numbers], chunk or 30)
    chunks = x.split(chunk or 30)
    limits = torch.cat([part.abs().max().expand(len(part)) / 254 for part in chunks])
    assert numbers.dtype == torch.int8 and len(scales) == len(chunks)
    assert ((found - x).abs() <= limits * 1.0001).all() and found[7] == 100
    assert (found != 0).sum() == other_than_0


def test_power_sgd_is_exact_for_a_matrix_of_rank_1_and_sends_vectors_whole():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(ROWS, generator=generator), torch.randn(COLUMNS + 1, generator=generator)
    given = torch.stack([torch.outer(u, v) * factor for factor in (1.0, 3.0)])[None].repeat(2, 1, 1, 1)
    for found in exchange(lambda: PowerSGD(error_feedback=False), given)[0][0]:
        torch.testing.assert_close(found, 2 * torch.outer(u, v), rtol=1e-5, atol=1e-5)


def test_power_sgd_comes_to_the_largest_singular_value():
    """Without feedback and with the same matrix in each step, the method is the power method."""
    M = random(1, 1)[0, 0]
    found = exchange(lambda: PowerSGD(error_feedback=False), M.expand(60, 1, -1, -1))[0][0][-1][:, :COLUMNS]
    U, S, V = torch.linalg.svd(M[:, :COLUMNS])
    torch.testing.assert_close(found, S[0] * torch.outer(U[:, 0], V[0]), rtol=0, atol=1e-3)


NUMBERS = ROWS * (COLUMNS + 1)  # 54


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "hook, dtype, operation, calls, payload",
    [
        (lambda: average, torch.float32, "all_reduce", 1, lambda N: 4 * NUMBERS),
        # 5 values of 4 bytes, 5 indices of 4 bytes, each filled up to 24
        (lambda: TopK(0.1), torch.float32, "all_gather", 1, lambda N: N * 48),
        # 5 values of 2 bytes, filled up to 16: an index costs twice as much as what it belongs to
        (lambda: TopK(0.1), torch.bfloat16, "all_gather", 1, lambda N: N * 40),
        # 54 numbers, filled up to 56 bytes, and 4 scales of 4
        (lambda: Int8(16), torch.float32, "all_gather", 1, lambda N: N * (56 + 16)),
        (lambda: Int8(16), torch.bfloat16, "all_gather", 1, lambda N: N * (56 + 16)),
        # p and the bias, then q
        (PowerSGD, torch.float32, "all_reduce", 2, lambda N: 4 * (ROWS + ROWS + COLUMNS)),
        (PowerSGD, torch.bfloat16, "all_reduce", 2, lambda N: 4 * (ROWS + ROWS + COLUMNS)),
    ],
)
def test_bytes_are_those_of_all_that_is_sent(hook, dtype, operation, calls, payload, ranks):
    group = exchange(hook, random(1, ranks, dtype))[0][1].group
    if ranks == 1:
        assert not group.calls and not group.payload
        return
    assert group.calls == {operation: calls} and group.payload == {operation: payload(ranks)}
    factor = 2 if operation == "all_reduce" else 1
    assert group.bytes_sent == factor * payload(ranks) * (ranks - 1) // ranks


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, of the practice ranks' sum
@pytest.mark.parametrize("hook", HOOKS)
def test_an_overflow_arrives_and_is_forgotten(hook):
    given = random(3, 2)
    given[1, 0, 2, 3] = torch.inf
    found = exchange(HOOKS[hook], given)[0][0]
    assert found[0].isfinite().all() and not found[1].isfinite().all() and found[2].isfinite().all()


def distance(hook, noise, steps=500, rate=0.02):
    """Minimize ½‖W − T‖² on two ranks; return its final value relative to the initial one, without row and column 0.

    One rank adds `noise` to the gradient's entry (0, 0), and the other subtracts it, so this entry is always the
    largest but carries no information. PowerSGD averages first, so the noise would cancel. For PowerSGD, both ranks
    add it in one step and subtract it in the next.
    """

    def on_rank(comm):
        target = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
        model = nn.Linear(COLUMNS, ROWS, bias=False)
        model.weight.data.zero_()
        ddp = FlatDDP(model, PracticeCommunication(comm), hook=hook())
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for step in range(steps):
            optimizer.zero_grad()
            sign = (-1) ** (step if isinstance(ddp.hook, PowerSGD) else comm.rank)
            ((model.weight - target).square().sum() / 2 + sign * noise * model.weight[0, 0]).backward()
            ddp.finish()
            optimizer.step()
        return ((model.weight - target)[1:, 1:].norm() / target[1:, 1:].norm()).item()

    return practice_groups(on_rank, 2).results[0]


@pytest.mark.parametrize(
    "hook, noise", [(lambda f: TopK(0.02, f), 5), (lambda f: Int8(None, f), 500), (PowerSGD, 5)], ids=HOOKS
)
def test_with_error_feedback_it_converges_where_without_it_does_not(hook, noise):
    assert distance(lambda: hook(False), noise) > 0.9
    assert distance(lambda: hook(True), noise) < 0.03


def test_what_needs_no_feedback():
    """Compare the plain mean with int8, whose chunks confine the large values to row 0."""
    assert distance(lambda: average, 500) < 1e-4
    assert distance(lambda: Int8(COLUMNS, error_feedback=False), 500) < 0.03


def test_packed_tensors_come_out_again():
    tensors = [torch.randn(3, 5), torch.arange(7, dtype=torch.int8), torch.randn(3).half(), torch.zeros(0).double()]
    message = pack(tensors)
    assert message.dtype == torch.uint8 and len(message) == 64 + 8 + 8
    for found, x in zip(unpack(message, [torch.empty_like(x) for x in tensors]), tensors, strict=True):
        assert found.dtype == x.dtype and torch.equal(found, x)


@pytest.mark.parametrize("call", [lambda: TopK(0), lambda: TopK(1.5), lambda: TopK(-0.1), lambda: Int8(0)])
def test_settings_that_mean_nothing_are_refused(call):
    with pytest.raises(ValueError, match="ratio is|chunk is"):
        call()
