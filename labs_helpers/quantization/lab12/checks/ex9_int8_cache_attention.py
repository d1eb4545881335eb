"""Check the transfer exercise of lab 12: attention that reads an int8 KV cache, and the bound of its error."""

from dataclasses import replace
from functools import partial

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, check_compiles, expect_close, expect_tuple, numbers, run_watched
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.course.verdict.compare import is_within
from labs_helpers.course.verdict.left_alone import expect_new_results
from labs_helpers.quantization.lab12.checks.cache_causes import bound_causes, output_causes, right
from labs_helpers.quantization.lab12.checks.products import padded
from labs_helpers.quantization.lab12.drawn import cached

half = torch.float16
WHY_O = "one rounding of o plus the float32 errors of scores, weights and sums"
WHY_BOUND = "a few float32 roundings"


@exercise("12/9", "transfer: an int8 KV cache", points=45, minutes=35, kernel=True)
def int8_cache_attention(student):
    cases = (
        ("3 heads, 40 positions, D = 32", *_cache(3, 40, 32)),
        ("2 heads, 64 positions, D = 16, in blocks of 16", *_cache(2, 64, 16, seed=4), {"BLOCK": 16}),
        ("1 head, 1 position, a score of −319", *_cache(1, 1, 16, seed=9, size=150.0)),
        ("2 heads, 3 positions, scores near 0", *_cache(2, 3, 16, seed=20, size=0.1)),
        ("2 heads, 50 positions, scores between −300 and 300", *_cache(2, 50, 32, seed=12, size=40.0)),
        ("float16, 4 heads, 129 positions, D = 64", *_cache(4, 129, 64, seed=16, dtype=half)),
    )
    passed_o, passed_bound = [], []
    for case, *arguments in cases:
        keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
        run = run_watched(case, student, *arguments, **keywords)
        o, bound = expect_tuple(case, run.value, "o", "bound")
        q, k, k_scale, v, v_scale = arguments
        for name, found, like in (("o", o, q), ("bound", bound, k_scale[:, 0])):
            _expect_form(case, name, found, like)
        run.expect_alone()
        for name, found in (("o", o), ("bound", bound)):
            replace(run, value=found).expect_written_once(name)
        expected, tolerance, expected_bound = right(*arguments)
        block = run.launches[-1].constexprs.get("BLOCK", 32)
        causes = partial(output_causes, *arguments, block)
        expect_close(case, o, expected, tolerance, WHY_O, still_possible(causes(), passed_o), "o")
        passed_o.append((causes(), partial(is_within, expected=expected, bound=tolerance)))
        causes = partial(bound_causes, *arguments, o, block)
        slack = 1e-4 * expected_bound
        expect_close(case, bound, expected_bound, slack, WHY_BOUND, still_possible(causes(), passed_bound), "bound")
        passed_bound.append((causes(), partial(is_within, expected=expected_bound, bound=slack)))
        for name, cache in (("k", k), ("v", v)):
            run.expect_loads(name, cache, 1, "one program reads each position of its head once")
        if len(passed_o) == 1:
            expect_new_results(case, run.value, partial(student, *arguments, **keywords))
        yield case
    yield check_compiles("compiled", run.launches[-1])


def _cache(H, L, D, seed=0, size=2.0, dtype=torch.float32):
    """Return q, k, k_scale, v, v_scale; keys and values differ in size from position to position."""
    q = padded((size * numbers(H, D, seed=seed)).to(dtype))
    k, v = (numbers(H, L, D, seed=seed + i) * (0.2 + numbers(H, L, 1, seed=seed + 5).abs()) for i in (1, 2))
    room = 1 + numbers(H, L, seed=seed + 6).abs()  # a scale may be larger than its position needs
    return q, *map(padded, (*cached(k), *cached(0.3 * v, room)))


def _expect_form(case, name, found, like):
    if not isinstance(found, torch.Tensor):
        raise Wrong(case, f"{name} is {found!r:.60}; return a tensor")
    if (found.shape, found.dtype) != (like.shape, like.dtype):
        shown = [f"{str(one.dtype)[6:]} {tuple(one.shape)}" for one in (found, like)]
        raise Wrong(case, *shown, where=name)
