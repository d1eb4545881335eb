"""Check exercise 7 of lab 11: rules, on the recorded findings of all jobs."""

from collections.abc import Sequence
from difflib import get_close_matches

from labs_helpers.clinic.causes import CAUSES
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.records import cause_of, recorded
from labs_helpers.clinic.rules import COMPARISONS, Rule, diagnose
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, is_number

LATER_RIGHT = 5  # of six
ADVICE = "print the findings of this job beside those of the healthy one"


@exercise("11/7", "rules that diagnose", points=25, minutes=35, reference=exercises.decision_rules)
def decision_rules(student):
    rules = rules_of(student())
    for name in jobs():
        records = [record for record in recorded() if record["job"] == name]
        for record in records:
            found, cause = diagnose(record["findings"], rules), cause_of(record)
            if found != cause:
                case = f"{name}, {record['state']}, seed {record['seed']}"
                raise Wrong(case, found, cause, "the diagnosis", cause=explained(record["findings"], cause, rules))
        yield f"{name}: {cause_of(records[0])}, {len(records)} of {len(records)} records"
    right = len({name for name in jobs("later") if all(map(_is_right(rules), of_job(name)))})
    if right < LATER_RIGHT:
        said = f"right for {right} of the {len(jobs('later'))} jobs that you do not see; {LATER_RIGHT} are needed"
        advice = "drop conditions that only fit one job: what does the cause itself change, on any machine?"
        raise Wrong("", said, advice=advice)
    yield f"{right} of {len(jobs('later'))} jobs that were written after the reference rules"


def of_job(name):
    return [record for record in recorded() if record["job"] == name]


def _is_right(rules):
    return lambda record: diagnose(record["findings"], rules) == cause_of(record)


def rules_of(answer) -> list[Rule]:
    """Return the rules of an answer. Raises Wrong for anything else than rules."""
    if not isinstance(answer, list | tuple):
        raise Wrong("", f"returned {answer!r:.60} instead of a list of rules")
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
    meant = f"; did you mean {close[0]!r}?" if close else f": choose from {', '.join(map(repr, known)):.200}"
    raise Wrong(case, f"there is no {what} {given!r:.60}{meant}")


def explained(findings, cause, rules) -> str:
    """Return why the rules do not name the cause: what holds instead, or which condition fails."""
    holding = [number for number, rule in enumerate(rules, 1) if rule.holds(findings)]
    own = [number for number, rule in enumerate(rules, 1) if rule.cause == cause]
    if holding:
        first = holding[0]
        why = f"rule {first} ({rules[first - 1].cause}) holds: {_values(rules[first - 1], findings)}"
        if later := next((number for number in holding if number in own), None):
            return f"{why}; rule {later} ({cause}) holds too, but comes after it"
        return why
    if not own:
        return f"no rule has the cause {cause!r}"
    return "; ".join(
        f"rule {number} ({cause}) does not hold: {_failing(rules[number - 1], findings)}" for number in own
    )


def _values(rule, findings):
    held = (f"{name} is {findings[name]:.3g} {sign} {bound:g}" for name, sign, bound in rule.conditions)
    return ", ".join(held) or "it has no condition"


def _failing(rule, findings):
    """Return the conditions that do not hold, in words."""
    return ", ".join(
        f"{name} is {findings[name]:.3g}, not {sign} {bound:g}" if name in findings else f"{name!r} was not found out"
        for name, sign, bound in rule.conditions
        if not Rule(rule.cause, ((name, sign, bound),)).holds(findings)
    )
