"""Turn an answer to exercise 7 into the library's rules."""

from collections.abc import Sequence
from difflib import get_close_matches

from labs_helpers.clinic.causes import CAUSES
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.rules import COMPARISONS, Rule
from labs_helpers.course.verdict import Wrong, is_number


def rules_of(answer) -> list[Rule]:
    """Return the rules of an answer. Raises Wrong for anything else than rules."""
    if not isinstance(answer, list | tuple):
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.60} instead of a list of rules", cause=cause)
    return [_rule(f"rule {number}", given) for number, given in enumerate(answer, 1)]


def _rule(case, given):
    if isinstance(given, Rule):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise Wrong(case, f"{given!r:.60} is no pair (cause, conditions)")
    cause, conditions = given
    if not isinstance(conditions, list | tuple):
        raise Wrong(case, f"its conditions are {conditions!r:.60} instead of a list of triples (finding, sign, bound)")
    if conditions and isinstance(conditions[0], str):
        raise Wrong(case, f"its conditions are {conditions!r:.60}", cause="one condition needs a list too: [(…)]")
    _expect_in(case, "cause", cause, CAUSES)
    for condition in conditions:
        if not isinstance(condition, list | tuple) or len(condition) != 3:
            raise Wrong(case, f"{condition!r:.60} is no triple (finding, sign, bound)")
        finding, sign, bound = condition
        _expect_in(case, "finding", finding, MEANING)
        _expect_in(case, "sign", sign, COMPARISONS)
        if not is_number(bound):
            raise Wrong(case, f"the bound of {finding!r} is {bound!r:.60} instead of a number")
    return Rule(cause, tuple(map(tuple, conditions)))


def _expect_in(case, what, given, known):
    if isinstance(given, str) and given in known:
        return
    close = get_close_matches(given, known, 1) if isinstance(given, str) else []
    meant = f"; did you mean {close[0]!r}?" if close else f": choose from {', '.join(map(repr, known))}"
    raise Wrong(case, f"there is no {what} {given!r:.60}{meant}")
