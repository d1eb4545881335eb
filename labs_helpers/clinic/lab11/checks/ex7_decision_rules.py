"""Check exercise 7 of lab 11: rules, on the recorded findings of all jobs."""

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.own_rules import rules_of
from labs_helpers.clinic.records import cause_of, recorded
from labs_helpers.clinic.rules import Rule, diagnose
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong

LATER_RIGHT = 5  # of six


@exercise("11/7", "rules that diagnose", points=25, minutes=35, reference=exercises.decision_rules)
def decision_rules(student):
    rules = rules_of(student())
    for name, job in jobs().items():
        records = of_job(name)
        for record in records:
            found, cause = diagnose(record["findings"], rules), cause_of(record)
            if found != cause:
                state = "" if job.cause == HEALTHY else f"{record['state']}, "
                case = f"{name}, {state}seed {record['seed']}"
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
