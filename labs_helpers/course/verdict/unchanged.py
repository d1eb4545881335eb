"""Whether an answer has left alone what it was given: a list of records, each a dict with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labs_helpers.course.verdict.wrong import Wrong


def expect_unchanged(case: str, given: Sequence[Mapping], before: Sequence[Mapping], what: str = "record") -> None:
    """Raises Wrong, saying what has changed, unless the list `given` to an answer is still as it was `before`.

    before: equal to it, and made of other dicts, as copy.deepcopy makes it. what: the word for one of the dicts."""
    if given == before:
        return
    if len(given) != len(before):
        found = f"the list of {what}s that you were given had {len(before)} of them, and has {len(given)}"
        raise Wrong(case, found, cause=f"{what}s were added or removed; make a list of your own")
    if all(one in before for one in given):
        found = f"the list of {what}s that you were given is in another order now"
        raise Wrong(
            case, found, cause=f"{what}s.sort() orders that list itself; sorted({what}s, …) makes one of its own"
        )
    old, new = next((old, new) for old, new in zip(before, given, strict=True) if old != new)
    key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
    found = f"the {what} {old['name']} that you were given was changed: its {key!r} was {_shown(old, key)} and "
    raise Wrong(case, f"{found}is {_shown(new, key)}; keep what you work out in a dict of your own")


def _shown(record: Mapping, key) -> str:
    return f"{record[key]!r:.60}" if key in record else "not there"
