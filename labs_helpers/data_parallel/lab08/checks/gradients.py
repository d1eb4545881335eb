"""Gradients after averaging: every rank's, held against the mean and against what common mistakes leave there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import SENTENCES, candidates_of
from labs_helpers.data_parallel.lab08.checks.replicas import Part

Everyone = Sequence[Mapping[str, Tensor | None]]  # of each rank: name → gradient, None where it has none


def means(everyone: Everyone) -> dict[str, Tensor]:
    """In float64; who has not used a parameter counts as 0."""
    names = {name: values for own in everyone for name, values in own.items() if values is not None}
    return {
        name: sum(own[name] for own in everyone if own[name] is not None) / len(everyone)
        if name in names
        else None  # used by nobody
        for name in everyone[0]
    }


def expect_means(
    case: str,
    found: Everyone,
    own: Everyone,
    parts: Sequence[Part] = (),
    *,
    before: Everyone | None = None,
    world: Everyone | None = None,
    special: Mapping[tuple[str, str], str] | None = None,
    groups: Mapping[str, set[str]] | None = None,
    expected: Mapping[str, Tensor] | None = None,
    extra: Mapping[str, Sequence[Mapping[str, Tensor | None]]] | None = None,
    sentences: Mapping[str, str] | None = None,
    kind: str = ".grad",
    advice: str = "",
) -> None:
    """Raises Wrong unless on every rank every .grad is the mean of `own`.

    found, own: of each rank of the group. before: what `own` was a step earlier. world: of all ranks, where those of
    the group are some. groups: what a set of parameters is called, as in {"the last bucket": {…}}; beside it what
    `parts` says. special: (what they are called, key of SENTENCES) → the sentence for that. expected: in place of the
    mean. extra: sentence → what a mistake of this exercise leaves on each rank. sentences: in place of SENTENCES.
    """
    right = expected or means(own)
    right = {name: right[name] if right[name] is not None else torch.zeros(_shape(parts, name)) for name in right}
    frozen = [part.name for part in parts if part.kind == "frozen"]
    off = [(rank, name) for rank, grads in enumerate(found) for name in right if not _near(grads[name], right[name])]
    for rank, grads in enumerate(found):
        for name in frozen if kind else ():
            if grads.get(name) is not None:
                raise Wrong(
                    case,
                    f"rank {rank}: {name}.grad is not what it was; {name} is frozen",
                    cause="a frozen parameter has requires_grad False, and is left alone",
                )
    if not off:
        return
    rank, name = off[0]
    names = {one for _, one in off}
    called = _called(names, set(right), parts, groups or {})
    candidates = candidates_of(own, before, world, right, found)
    texts = {key: key for key in extra or {}} | dict(SENTENCES if sentences is None else sentences)

    def fits(answer) -> bool:
        return all(_near(found[r][n], answer[r].get(n)) for r in range(len(found)) for n in names)

    special = special or {}
    spoken = (
        (special.get((called, key)) or (f"of {called} alone: {texts[key]}" if called else texts[key]), answer)
        for key, answer in [*candidates, *(extra or {}).items()]
        if key in texts
    )
    raise Wrong(
        case,
        _shown(found[rank][name], right[name]),
        _shown(right[name], found[rank][name]),
        f"rank {rank}: {name}{kind}{_others(off, found, right)}",
        likely(spoken, fits),
        advice or "print rank, name and .grad before and after each collective, on two ranks",
    )


def _near(found, right) -> bool:
    """Up to what the tensor's dtype rounds."""
    if found is None or right is None:
        return found is right
    if found.shape != right.shape:
        return False
    if not (found.isfinite().all() and right.isfinite().all()):
        return torch.allclose(found.double(), right.double(), equal_nan=True)
    largest = max(1.0, float(right.abs().max())) if right.numel() else 1.0
    bound = 8 * torch.finfo(found.dtype).eps * largest if found.is_floating_point() else 0.0
    return bool(((found.double() - right).abs() <= bound).all())


def _shape(parts, name):
    return next(part.shape for part in parts if part.name == name)


def _called(names: set[str], every: set[str], parts: Sequence[Part], groups: Mapping[str, set[str]]) -> str:
    """What the wrong parameters are called; '' where they are all of them, or nothing is special about them."""
    if names == every:
        return ""
    kinds: dict[str, set[str]] = {}
    for part in parts:
        kinds.setdefault(KINDS.get(part.kind, ""), set()).add(part.name)
        if part.dtype != torch.float32:
            kinds.setdefault(f"the parameters in {str(part.dtype).removeprefix('torch.')}", set()).add(part.name)
    kinds.pop("", None)
    for called, those in {**groups, **kinds}.items():
        if names == those & every:
            return called
    return ", ".join(sorted(names)) if len(names) <= 2 else ""


KINDS = {
    "transposed": "the parameter that lies transposed in memory",
    "tied": "the weight that two layers share",
    "unused": "the parameters that not every rank has used",
    "idle": "the parameter that no rank has used",
}


def _others(off, found, right) -> str:
    names, ranks = dict.fromkeys(n for _, n in off), dict.fromkeys(r for r, _ in off)
    more = f", and {len(names) - 1} more of {len(right)} parameters" if len(names) > 1 else ""
    where = "" if len(ranks) == len(found) else f" (wrong on rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))})"
    return more + where


def _shown(tensor, other) -> str:
    """The first element in which they differ."""
    if tensor is None:
        return "None"
    if other is None or tensor.shape != other.shape:
        return f"shape {tuple(tensor.shape)}"
    a, b = tensor.double().reshape(-1), other.double().reshape(-1)
    at = int(((a - b).abs().nan_to_num(torch.inf)).argmax()) if a.numel() else 0
    place = f" at {list(map(int, torch.unravel_index(torch.tensor(at), tensor.shape)))}" if tensor.ndim else ""
    return f"{float(a[at]):.6g}{place}"
