"""The stretch of lab 07: an MLP under sequence parallelism, the bytes that it sends and the activations that a rank
holds (Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.figure import Figure

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.practice.errors import PracticeError
from labs_helpers.practice.groups import practice_groups

RANKS, BATCH, LENGTH, WIDTH, HIDDEN = 4, 2, 8, 16, 64


def all_reduced(x, up, down, group):
    """Compute Megatron's MLP: every rank holds the whole x and returns the whole output."""
    inside = (x @ up).relu()

    def backward(grad_out):
        return group.all_reduce((grad_out @ down.T * (inside > 0)) @ up.T)

    return group.all_reduce(inside @ down), backward


def in_parts(x, up, down, group):
    """Compute the same MLP from parts of the sequence: gather x before the columns, reduce-scatter the output after the
    rows, and exchange the two collectives in the backward pass."""
    inside = (group.all_gather(x, 1) @ up).relu()

    def backward(grad_out):
        whole = group.all_gather(grad_out, 1)
        return group.reduce_scatter((whole @ down.T * (inside > 0)) @ up.T, 1)

    return group.reduce_scatter(inside @ down, 1), backward


def draw_stretch(student: Callable) -> Figure:
    """Draw the KB that a rank sends in both passes and the KB of x and output that it holds.

    The bars compare Megatron's MLP, our version in parts, and student(x, up, down, group) if it is right.
    """
    ways = {"all-reduced": (all_reduced, False), "ours, in parts": (in_parts, True), "yours": (student, True)}
    sent, held = {}, {}
    for name, (mlp, parted) in ways.items():
        try:
            sent[name], held[name] = measured(mlp, parted)
        except (Wrong, PracticeError) as error:
            print(f"{name}: {error}")
    share = held["ours, in parts"] / held["all-reduced"]
    same = "The same bytes sent" if sent["ours, in parts"] == sent["all-reduced"] else "Different bytes sent"
    title = f"{same}, and {share:.0%} of x and output held"
    panels = {"sent, forward and backward": sent, "held between the layers": held}
    fig, axes = figures.panels(title, panels, 9, 1.6 + 0.4 * len(sent), sharey=True)
    for ax, values in zip(axes, panels.values(), strict=True):
        kilobytes = {name: value / 1e3 for name, value in values.items()}
        texts = {name: f"{value:.3g}" for name, value in kilobytes.items()}
        draw_bars(ax, kilobytes, "ours", texts, xlabel="KB per rank", room=1.2)
    size = f"MLP of {WIDTH} → {HIDDEN} → {WIDTH}, {BATCH} × {LENGTH} tokens in float32, {RANKS} ranks"
    figures.write_below(fig, size)
    return fig


def measured(mlp: Callable, parted: bool) -> tuple[int, int]:
    """Return (bytes that a rank sends over a ring, bytes of x and output that it holds); raise Wrong for a wrong MLP.

    parted: x and the output are this rank's part of the sequence; otherwise both are whole.
    """
    generator = torch.Generator().manual_seed(0)
    x, up, down = (
        torch.randn(shape, generator=generator) for shape in ((BATCH, LENGTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH))
    )
    grad_out = torch.randn(x.shape, generator=generator)

    def on_rank(comm):
        group = PracticeCommunication(comm)
        mine = [group.part(whole, 1) if parted else whole for whole in (x, grad_out)]
        answer = mlp(mine[0].clone(), group.part(up, 1), group.part(down, 0), group)
        if answer is None:
            return None
        out, backward = answer
        return mine[0], out, backward(mine[1].clone()), group.bytes_sent

    leaf = x.clone().requires_grad_()
    expected = (leaf @ up).relu() @ down
    (grad,) = torch.autograd.grad(expected, leaf, grad_out)
    results = practice_groups(on_rank, RANKS).results
    if results[0] is None:
        raise Wrong("", "still open: it returns nothing")
    for rank, (_, out, grad_x, _) in enumerate(results):
        for name, found, whole in (("out", out, expected.detach()), ("grad_x", grad_x, grad)):
            right = whole.chunk(RANKS, 1)[rank] if parted else whole
            if not isinstance(found, torch.Tensor) or found.shape != right.shape:
                of = getattr(found, "shape", None)
                shape = "None" if of is None else tuple(of)
                raise Wrong("", f"rank {rank}'s {name} has shape {shape}, expected {tuple(right.shape)}")
            if not torch.allclose(found, right, rtol=1e-3, atol=1e-3):
                raise Wrong("", f"rank {rank}'s {name} is off by up to {(found - right).abs().max():.3g}")
    held, out, _, sent = results[1]
    return sent, held.nbytes + out.nbytes
