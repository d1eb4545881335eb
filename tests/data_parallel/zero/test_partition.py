"""Test how flat memory is divided, and which optimizers accept pieces of it; needs no ranks."""

import pytest
import torch

from labs_helpers.data_parallel.zero.elementwise import check_elementwise
from labs_helpers.data_parallel.zero.owned import Owned
from labs_helpers.data_parallel.zero.partition import ALIGNMENT, Layout

SHAPES = [torch.Size(s) for s in ((7, 5), (), (16,), (0,), (3, 1, 11), (64, 2), (1,))]


@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("shapes", [SHAPES, SHAPES[:1], SHAPES[1:2] * 3])
def test_pieces_are_all_elements_once_and_shards_equal(ranks, shapes):
    layout = Layout(shapes, ranks)
    assert layout.numel == ranks * layout.shard_numel and layout.shard_numel % ALIGNMENT == 0
    assert layout.numel - sum(layout.numels) < ALIGNMENT * (len(shapes) + ranks)
    flat = torch.zeros(layout.numel)
    for number, view in enumerate(layout.views(flat)):
        assert view.shape == shapes[number] and view.storage_offset() % ALIGNMENT == 0
        view.copy_(torch.arange(view.numel()).view(view.shape) + 1000 * (number + 1))
    for gap in layout.gaps:
        assert not flat[gap].any()
        flat[gap] = -1
    assert (flat != 0).all()  # nothing is in neither
    put = [torch.full((n,), -2.0) for n in layout.numels]
    for rank in range(ranks):
        shard = layout.shard(flat, rank)
        for piece in layout.pieces(rank):
            assert (put[piece.number][piece.in_tensor] == -2).all()
            put[piece.number][piece.in_tensor] = shard[piece.in_shard]
    for number, tensor in enumerate(put):
        assert torch.equal(tensor, torch.arange(len(tensor)) + 1000.0 * (number + 1))


ELEMENTWISE = "SGD Adam AdamW Adamax NAdam RAdam Adagrad Adadelta RMSprop Rprop ASGD".split()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_optimizers_that_go_element_by_element(name):
    check_elementwise(getattr(torch.optim, name), {"lr": 0.0}, torch.device("cpu"))
    if name in ("SGD", "Adam", "AdamW", "Adagrad"):
        options = {"lr": 1e-3, "fused": True, "params": [], "name": "decay"}
        check_elementwise(getattr(torch.optim, name), options, torch.device("cpu"))


class NormedSGD(torch.optim.SGD):
    """As LAMB and LARS do: each tensor's step has a length of its own."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad /= p.grad.norm()
        return super().step(closure)


@pytest.mark.parametrize(
    "optimizer, words",
    [
        (torch.optim.LBFGS, "LBFGS cannot step pieces"),
        (torch.optim.SparseAdam, "SparseAdam cannot step pieces"),
        (torch.optim.Muon, "Muon cannot step pieces"),
        (torch.optim.Adafactor, "Adafactor does not update each element independently"),
        (NormedSGD, "NormedSGD does not update each element independently"),
    ],
)
def test_optimizers_that_need_more_than_an_element(optimizer, words):
    with pytest.raises(ValueError, match=words):
        check_elementwise(optimizer, {"lr": 0.0}, torch.device("cpu"))


def test_master_weights_are_rounded_into_the_shard():
    layout = Layout([torch.Size([20]), torch.Size([5, 3])], 2)
    exact = torch.linspace(1, 2, layout.shard_numel)
    shard = exact.bfloat16()
    owned = Owned(layout.pieces(0), shard, exact, torch.device("cpu"))
    owned.fetch(torch.ones_like(shard))
    owned.take([True, False])
    assert [t.grad is None for t in owned.tensors] == [p.number == 1 for p in owned.pieces]
    with torch.no_grad():
        owned.tensors[0] -= 1e-4 * owned.tensors[0].grad  # less than bfloat16 can tell apart
    owned.give()
    piece = owned.pieces[0].in_shard
    assert torch.equal(owned.home[piece], exact[piece] - 1e-4)
    assert torch.equal(shard, owned.home.bfloat16()) and owned.tensors[0].grad is None
