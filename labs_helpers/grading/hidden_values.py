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
    far: Collection[str] = (),
) -> dict[str, Verdict]:
    """Of each answer, by its exercise's id, the verdict of `judge`, which is as `verdicts`. own: the course's answers
    (`own_answers`), of which an answer gets those to earlier exercises that it reads. strange: ids of answers that
    share a jail with no other. far: those whose answers run in processes of their own. What is said there could tell
    the hidden inputs: only status and values are used."""
    given = [_after(answer, own) for answer in answers]
    # What the jail is given lies in its memory: the course's answer to one exercise is not to be beside another's.
    alone = [one for one, answer in zip(given, answers, strict=True) if one is not answer or one.shipped.id in strange]
    together = [one for one in given if one not in alone]
    found: dict[str, Verdict] = {}
    for group in ([together] if together else []) + [[one] for one in alone]:
        told = judge(group, imports, limits, seed=seed, far=far)
        found |= {answer.shipped.id: one for answer, one in zip(group, told, strict=True)}
    return found


def _after(answer: Answer, own: Mapping[str, str]) -> Answer:
    """With what it reads of the course's answers to the exercises before it, which a notebook has there, in front."""
    earlier = [own[one] for one in takewhile(lambda one: one != answer.shipped.id, own)]
    needed = OwnCells().needed(earlier, "\n".join((*answer.before, answer.source)))
    return replace(answer, before=(*needed, *answer.before)) if needed else answer
