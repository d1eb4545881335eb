"""Check exercise 2 of lab 11: costs found by leaving parts of a job out, on jobs with known times."""

from math import isclose
from operator import itemgetter

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks import elimination_mistakes as mistakes
from labs_helpers.clinic.lab11.timed_jobs import Job
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts

JOBS = (  # name, (communication, loading of data, batch) → ms
    ("many small kernels", lambda c, d, b: 60 + 4 * b + 10 * c + 3 * b * d),
    ("one part after another", lambda c, d, b: 4 + 20 * b + 6 * b * d + 8 * c),
    ("a loader slower than the computation", lambda c, d, b: 3 + max(30 * b * d, 22 * b) + 5 * c),
    ("a loader that keeps up", lambda c, d, b: 3 + max(15 * b * d, 22 * b) + 9 * c),
    ("a loader slower than all the rest", lambda c, d, b: 2 + max(41 * b * d, 24 * b + 10 * c)),
    ("an all-reduce under the computation", lambda c, d, b: 6 + max(25 * b, 18 * c) + 2 * d),
    ("an all-reduce longer than the computation", lambda c, d, b: 7 + 10 * b + max(3 * b * d, 4 * b) + 14 * c),
    ("ranks that no longer wait compete for the disk", lambda c, d, b: 5 + 30 * b + 4 * b * d + 7 * d * (not c)),
    ("a GPU that gets hot without pauses", lambda c, d, b: 6 + 25 * b + 4 * c + 3 * (not d)),
    ("a larger batch fills the memory", lambda c, d, b: 1 + 6 * c + 3 * d + 20 * b * b),
    ("nothing but computation", lambda c, d, b: 12.5 * b),
)  # fmt: skip
COSTS = ("communication", "data", "fixed")
MOST = 4  # measurements
ERRORS = ((r"^TypeError: .*'list'", "measure returns the list of a run's times; its fastest step is their min"),)
ADVICE = "print the fastest step of each of your runs, and work out the three costs of this job by hand"


@exercise("11/2", "isolate by elimination", points=15, minutes=20, reference=exercises.cost_by_elimination)
def cost_by_elimination(student):
    jobs = []

    def costs(ms, seed):
        jobs.append(job := Job(ms, seed))
        answer = student(job.measure)
        if not isinstance(answer, dict) or set(answer) != set(COSTS):
            cause = "a return is missing" if answer is None else ""
            raise Wrong("", f"returned {answer!r:.90} instead of a dict of {', '.join(COSTS)}", cause=cause)
        for name, value in answer.items():
            expect_is_number("", name, value)
        return answer

    def of_job(causes):
        return lambda ms, seed: causes(Job(ms, seed).measure)

    causes = (mistakes.part("communication"), mistakes.part("loading"), mistakes.fixed)
    parts = [Part(itemgetter(name), of_job(one), _told(name), _close) for name, one in zip(COSTS, causes, strict=True)]
    cases = list(_cases())
    yield from judge_parts(student, costs, cases, parts, errors=ERRORS, advice=ADVICE)
    for case, job in zip(cases, jobs, strict=True):
        _expect_few(case.name, job.calls)
    yield f"at most {MOST} runs of each job"


def _cases():
    for seed, (name, ms) in enumerate(JOBS):
        right = mistakes.right(Job(ms, seed).measure)
        shown = ", ".join(f"{cost} {right[cost]:g}" for cost in COSTS)
        yield Case(name, (ms, seed), right, f"{name}: of {ms(True, True, 1):g} ms, {shown}")


def _expect_few(name, calls):
    if len(calls) > MOST:
        again = len(set(calls)) < len(calls)
        cause = "a run is repeated; keep the fastest step of each run in a variable" if again else ""
        found = f"the costs are right, but measure was called {len(calls)} times; {MOST} runs are enough"
        raise Wrong(name, found, cause=cause, advice="each cost compares the whole step with one other run")


def _close(found, right) -> bool:
    return isclose(found, right, rel_tol=1e-6, abs_tol=1e-6)


def _told(name):
    def told(case, found):
        ms = case.arguments[0]
        runs = {"the fastest step takes": (1, 1, 1), "without communication": (0, 1, 1), "without loading": (1, 0, 1)}
        runs["with twice the batch"] = (1, 1, 2)
        shown = ", ".join(f"{run} {ms(*given):g}" for run, given in runs.items())
        return f"{found:.6g} ms", f"{case.right[name]:g} ms\n  {shown} ms", name

    return told
