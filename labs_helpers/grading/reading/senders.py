"""Find out who sent a file, from its name as Moodle, Canvas or an instructor writes it and from the class list.

Ada Smith_111_assignsubmission_file_/x.ipynb      Moodle: full name, number of the participant in this assignment
smithada_LATE_12345_67890_x.ipynb                 Canvas: name, LATE if it is, id of the user, id of the file
anon_x7Kd2_67890_x.ipynb                          Canvas, graded anonymously: id of the submission
ada_x.ipynb, ada.ipynb, ada/x.ipynb               anything else: the longest id of the class list that it begins with,
                                                  or the part before the first _
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labs_helpers.grading.results.plain_text import named

_FORMS = (
    re.compile(r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)(?:_|$)"),
    re.compile(r"(?P<late>LATE_)?(?P<name>anon_[0-9A-Za-z]+)_\d+_"),
    re.compile(r"(?P<name>\w*?)_(?P<late>LATE_)?(?P<number>[1-9]\d*)_[1-9]\d*_"),  # no lab's number begins like that
)
WHICH = "the class list does not tell who this is; write {id} into its column id"


@dataclass(frozen=True, order=True)
class Sender:
    """The sender of a file. number: the platform's, or ''."""

    name: str
    number: str = ""

    @property
    def both(self) -> str:
        return f"{self.name}_{self.number}" if self.number else self.name


def from_platform(name: str) -> bool:
    """Return True if Moodle or Canvas has named this file or folder."""
    return any(form.match(name) for form in _FORMS)


def sender(name: str, known: Collection[str] = ()) -> tuple[Sender, bool]:
    """Return the sender of a file or folder in an inbox, given its name without suffix, and whether Canvas calls the
    file late. known: the ids of the class list."""
    for form in _FORMS:
        if found := form.match(name):
            parts = found.groupdict()
            return Sender(parts["name"], parts.get("number") or ""), bool(parts.get("late"))
    ends = [place for place, letter in enumerate(f"{name}_") if letter == "_" and place]
    for end in reversed(ends):
        if named(name[:end]) in known:
            return Sender(name[:end]), False
    return Sender(name.partition("_")[0] or name), False


def ids(senders: Collection[Sender], known: Mapping[str, str]) -> Iterator[tuple[Sender, str, str]]:
    """Return (sender, id, warning) with unique ids; the warning is a sentence if the class list does not contain the
    id. known: id → name.

    A name alone identifies a student only if exactly one sender and one student in the class share it. The platform's
    number is accepted unless the class list assigns it to a different name.
    """
    count = Counter(one.name for one in senders)
    listed: dict[str, list[str]] = {}
    for id, name in known.items():
        for order in orders(name):
            listed.setdefault(order, []).append(id)
    of_name = {one: listed.get(_letters(one.name), []) if one.number else [] for one in senders}
    meant = {one: _listed(one, known, of_name[one], count[one.name] == 1) for one in senders}
    claims = Counter(filter(None, meant.values()))
    taken = {id for id, senders_of_it in claims.items() if senders_of_it == 1}
    for one in sorted(senders):
        if meant[one] in taken:
            yield one, meant[one], ""
            continue
        several = count[one.name] > 1 or len(of_name[one]) > 1
        id = one.both if several or not one.name else one.name
        why = WHICH.format(id=one.both) if known and one.number and (several or meant[one]) else ""
        while id in taken or id in known:
            id += "'"
        taken.add(id)
        yield one, id, why


def _listed(one: Sender, known: Mapping[str, str], of_name: Sequence[str], alone: bool) -> str:
    """Return their id in the class list, or ''. of_name: the ids of students with that name."""
    number = one.number
    for id in (one.both, f"{one.name} {number}") if number else ():  # the latter as in Moodle's grading worksheet
        if id in known:
            return id
    if number in of_name:
        return number
    if alone and one.name in known:
        return one.name
    if alone and len(of_name) == 1:
        return of_name[0]
    return number if number in known and not known[number] else ""


def orders(name: str) -> set[str]:
    """Return 'adasmith' and 'smithada' for 'Ada Smith' and for 'Smith, Ada'."""
    words = re.findall(r"[^\W_]+", name.casefold())
    return {"".join(words[place:] + words[:place]) for place in range(len(words))}


def _letters(name: str) -> str:
    return "".join(re.findall(r"[^\W_]", name.casefold()))
