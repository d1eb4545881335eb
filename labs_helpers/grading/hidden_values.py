"""What answers give for the hidden inputs, asked in jails in which neither checks nor references are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from labs_helpers.grading.jails.bubblewrap import Limits
from labs_helpers.grading.reading.own_cells import OwnCells
from labs_helpers.grading.reading.submission import Answer
from labs_helpers.grading.verdict import Verdict


def hidden_values(
    answers: Sequence[Answer],
    own: Mapping[str, str],
    imports: Iterable[str],
    limits: Limits,
    seed: int,
    judge: Callable[..., list[Verdict]],
    strange: Collection[str] = (),
) -> dict[str, Verdict]:
    """Of each answer, by its exercise's id, the verdict of `judge`, which is as `verdicts`. own: the course's answers
    (`own_answers`). strange: ids of answers that are to share a jail with no other. No more than that jail can read is
    needed to be right, and nothing of what is said there but the values is to be shown to anybody."""
    given = [_after(answer, own) for answer in answers]
    alone = [one for one, answer in zip(given, answers, strict=True) if one is not answer or one.shipped.id in strange]
    together = [one for one in given if one not in alone]
    found: dict[str, Verdict] = {}
    for group in ([together] if together else []) + [[one] for one in alone]:
        told = judge(group, imports, limits, seed=seed, apart=group[0].shipped.id in strange)
        found |= {answer.shipped.id: one for answer, one in zip(group, told, strict=True)}
    return found


def _after(answer: Answer, own: Mapping[str, str]) -> Answer:
    """With what it reads of the course's answers to the exercises before it, which a notebook has there, in front."""
    earlier = [own[one] for one in takewhile(lambda one: one != answer.shipped.id, own)]
    needed = OwnCells().needed(earlier, "\n".join((*answer.before, answer.source)))
    return replace(answer, before=(*needed, *answer.before)) if needed else answer
