"""Check exercise 9 of lab 13: speculative acceptance keeps the target's distribution."""

from functools import partial
from numbers import Integral

import numpy as np
import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_list
from labs_helpers.course.verdict.left_alone import Given
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.drawn import Step, pick

STEPS, LIMIT = 4_000, 30.0  # chi-square of 4 degrees of freedom exceeds 30 once in 200,000 samples of a right answer
ADVICE = "write p[i], q[i] and their quotient for each proposal, and go through the uniform numbers one by one"
REJECTED, REST, BONUS = "uniform[i] * q[i, token] >= p[i, token]", "(p[i] - q[i]).clamp(min=0)", "p[len(proposed)]"
ENDS = f"return [*tokens, draw({REST})]"
ROUND = "the comparison is the wrong way round: a proposal is accepted if the uniform number is below p / q"
MISTAKES = [
    ("the replacement is drawn from p; p has already got its share from the accepted proposals: max(0, p − q)",
     (REST, "p[i]")),
    ("the replacement is drawn from q, the draft's distribution", (REST, "q[i]")),
    ("the weights of the replacement are |p − q|; where q is larger, they are 0", (".clamp(min=0)", ".abs()")),
    ("the weights of the replacement are max(0, q − p): exchange p and q", ("p[i] - q[i]", "q[i] - p[i]")),
    ("the weights of the replacement are negative where q is larger than p: use 0 there", (".clamp(min=0)", "")),
    ("the probability to accept is q / p; it is min(1, p / q)",
     (REJECTED, "uniform[i] * p[i, token] >= q[i, token]")),
    (ROUND, (">= p[i, token]", "< p[i, token]")),
    (ROUND, (">= p[i, token]", "<= p[i, token]")),
    ("the probability to accept is p; it is min(1, p / q)", (REJECTED, "uniform[i] >= p[i, token]")),
    ("the probability to accept is q; it is min(1, p / q)", (REJECTED, "uniform[i] >= q[i, token]")),
    ("a proposal is accepted only if p ≥ q; if p < q, it is accepted with the probability p / q",
     (REJECTED, "p[i, token] < q[i, token]")),
    ("the uniform numbers are not used: every proposal that p allows is accepted", (REJECTED, "p[i, token] == 0")),
    ("a proposal is accepted only if it is the target's most probable token", (REJECTED, "token != p[i].argmax()")),
    ("every proposal is accepted", (REJECTED, "False")),
    ("every proposal is compared with p[0]; p[i] belongs to proposal i", ("p[i", "p[0")),
    ("proposal i is compared with p[i + 1]; p[i] is the distribution after i accepted proposals", ("p[i", "p[i + 1")),
    ("proposal i is compared with q[i − 1]; it was drawn from q[i]", ("q[i", "q[i - 1")),
    ("proposal i is compared with q[i − 1]; it was drawn from q[i]",
     (REJECTED, "uniform[i] * q[i - 1, token] >= p[i, token]")),
    ("the probabilities are those of the proposal's index, not of its token",
     (REJECTED, "uniform[i] * q[i, i] >= p[i, i]")),
    ("large uniform numbers accept; small ones have to", (REJECTED, "(1 - uniform[i]) * q[i, token] >= p[i, token]")),
    ("proposals after a rejected one are still looked at; they continue a text that does not exist",
     (ENDS, f"tokens.append(draw({REST}))\n            continue")),
    ("after the replacement one more token is drawn; a rejection ends the step",
     (ENDS, f"tokens.append(draw({REST}))\n            break")),
    ("a rejected proposal is replaced by a token drawn from p[K]; the weights are max(0, p − q) of its place",
     (ENDS, "break")),
    ("no token is drawn after K accepted proposals: p[K] is there already", (f"[*tokens, draw({BONUS})]", "tokens")),
    ("the token after K accepted proposals is drawn from p[K − 1]; it comes from p[K]",
     (BONUS, "p[max(len(proposed) - 1, 0)]")),
    ("the token after K accepted proposals is drawn from p[0]; it comes from p[K]", (BONUS, "p[0]")),
    ("a rejected proposal is not replaced", (ENDS, "return tokens")),
    ("the rejected proposal is returned together with its replacement",
     (ENDS, f"return [*tokens, token, draw({REST})]")),
]  # fmt: skip
PARTS = {"tokens": "the tokens", "draws": "the number of draws", "weights": "the drawn token's distribution"}


def _cases():
    """Return steps whose uniform numbers are a little below or above min(1, p / q) of their proposals."""
    below, above = (lambda limit: min(limit, 1.0) - 1e-6), (lambda limit: limit + 1e-6)
    low, many = (lambda limit: 0.5 * min(limit, 1.0)), Step(5, (1, 3, 0, 2), (0.0,) * 4, seed=3)
    places = [(0, "the first"), (1, "the second"), (3, "the last")]
    seeds = [many._replace(seed=seed) for seed in range(200)]
    small = ([limit for limit in _limits(step) if limit < 0.9] for step in seeds)
    several = next(s for s, limits in zip(seeds, small, strict=True) if len(limits) > 1 and 0.6 < limits[0] < 0.8)
    yield "uniform numbers of 0 accept all proposals", several
    yield "all proposals are accepted", _near(several, [below] * 4)
    for at, name in places:
        step = next(s for s in seeds if _limits(s)[at] < 0.9)
        yield f"{name} of 4 proposals is rejected", _near(step, [below] * at + [above] + [low] * (3 - at))
    yield "no proposals", Step(6, (), (), seed=5)
    yield "a proposal that the target never makes", Step(4, (2, 2), (0.0, 0.0), seed=6, certain=True)
    yield "one proposal, far from certain", Step(3, (0,), (0.97,), seed=8)


def _limits(step):
    p, q = step.distributions()
    return [float(p[i, token] / q[i, token]) for i, token in enumerate(step.proposed)]


def _near(step, sides):
    return step._replace(uniform=tuple(side(limit) for side, limit in zip(sides, _limits(step), strict=True)))


@exercise("13/9", "exact acceptance", points=15, minutes=25, reference=exercises.verify)
def verify(student):
    def checked(*description):
        def answer(p, q, *rest):
            given = Given(student, (p, q), {})
            tokens = student(p, q, *rest)
            given.expect_left_alone("", tokens)
            return expect_list("", tokens, "a list of tokens, whole numbers", lambda one: isinstance(one, Integral))

        return _run(answer, *description)

    cases = [_case(*case) for case in _cases()]
    mistakes = [(sentence, partial(_run, one)) for sentence, one in variants(exercises.verify, MISTAKES)]
    yield from judge(student, checked, cases, mistakes, told=_told, same=_same, advice=ADVICE)
    yield _statistics(student)


def _run(answer, *description):
    """Return an answer's tokens, the number of draws, and the weights of the last one, which add up to 1."""
    given, drawn = Step(*description), []

    def draw(weights):
        drawn.append(torch.as_tensor(weights, dtype=torch.float64))
        # A mistake may draw with negative weights, or with none: they show in the comparison.
        return pick(drawn[-1].clamp(min=0), 0.43)

    p, q = given.distributions()
    tokens = answer(p, q, list(given.proposed), list(given.uniform), draw)
    weights = drawn[-1] / drawn[-1].sum() if drawn else torch.zeros(given.V, dtype=torch.float64)
    return {"tokens": tokens, "draws": len(drawn), "weights": weights}


def _case(name, step):
    right = _run(variant(exercises.verify), *step)
    return Case(name, tuple(step), right, f"{name}: {len(right['tokens'])} token{'s' * (len(right['tokens']) != 1)}")


def _same(found, other):
    return not any(_differs(part, found, other) for part in PARTS)


def _told(case, found):
    right = case.right
    part = next(part for part in ("draws", "weights", "tokens") if _differs(part, found, right))
    shown = ([round(x, 4) for x in one[part].tolist()] if part == "weights" else one[part] for one in (found, right))
    return (*map(str, shown), PARTS[part])


def _differs(part, found, right):
    return not torch.allclose(found[part], right[part], atol=1e-9) if part == "weights" else found[part] != right[part]


def _statistics(student):
    """Draw many steps and compare how often each token comes first with the target's distribution."""
    p, q = Step(5, (0, 0), (0.0, 0.0), seed=11).distributions()
    numbers, counts = np.random.default_rng(0).random((STEPS, 5)).tolist(), np.zeros(5)
    for a, b, u, w, last in numbers:
        tokens = student(p, q, [pick(q[0], a), pick(q[1], b)], [u, w], lambda weights, last=last: pick(weights, last))
        counts[tokens[0]] += 1
    expected = STEPS * p[0].numpy()
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    if chi_square > LIMIT:
        found, right = (", ".join(f"{x / STEPS:.3f}" for x in values) for values in (counts, expected))
        raise Wrong(f"{STEPS:,} random steps", found, right, where="how often each token comes first", advice=ADVICE)
    return f"{STEPS:,} random steps: the first token has the target's distribution (chi-square {chi_square:.1f})"
