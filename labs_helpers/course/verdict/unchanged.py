"""Check that an answer did not change its argument, a list of records (dicts with a name)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labs_helpers.course.verdict.wrong import Wrong


def expect_unchanged(case: str, given: Sequence[Mapping], before: Sequence[Mapping], what: str = "record") -> None:
    """Raise Wrong, naming the change, unless the list `given` to an answer still equals `before`.

    before: a copy with separate dicts, as copy.deepcopy makes. what: the word for one of the dicts.
    """
    if given == before:
        return
    if len(given) != len(before):
        found = f"your function got a list of {len(before)} {what}s and left {len(given)} in it"
        raise Wrong(case, found, cause=f"{what}s were added or removed; build a new list instead")
    if all(one in before for one in given):
        found = f"your function reordered the list of {what}s that it got"
        raise Wrong(
            case, found, cause=f"{what}s.sort() sorts that list in place; sorted({what}s, …) returns a new list"
        )
    old, new = next((old, new) for old, new in zip(before, given, strict=True) if old != new)
    key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
    found = f"your function changed the {what} {old['name']}, which it got: its {key!r} was {_shown(old, key)} and "
    raise Wrong(case, f"{found}is {_shown(new, key)}; keep your results in a separate dict")


def _shown(record: Mapping, key) -> str:
    return f"{record[key]!r:.60}" if key in record else "missing"
