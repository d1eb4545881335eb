"""Plant each mistake that lab 01's checks name, as an answer."""

from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.lab01 import checks as check
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import (
    bound_by_mistakes,
    diagnose_mistakes,
    gpu_time_mistakes,
    mfu_mistakes,
    peak_bytes_mistakes,
    place_checkpoints_mistakes,
    scaled_update_mistakes,
    traces,
)
from tests.planted import PlantedLists, by_number

OPERATION = {"name": "aten::add", "args": {"Input Dims": [[2]], "Input type": ["float"]}}


def of_a_trace(cases, mistakes):
    return by_number(mistakes, next(iter(cases.values())))


def instead(right, at):
    """The right answer, a tuple, with a mistake in the place `at`."""

    def answer(mistake):
        def made(*arguments):
            parts = list(right(*arguments))
            parts[at] = mistake(*arguments)
            return tuple(parts)

        return made

    return answer


def column(right, at):
    """The right table with the numbers of another in a column; None: the names of another."""

    def answer(mistake):
        def made(events):
            table, other = right(events), {name: row or () for name, row in mistake(events).items()}
            width = len(next(iter(table.values()), (0, 0)))
            if at is None:
                rows = {name: (*row, *table.get(name, (0,) * width))[:width] for name, row in other.items()}
            else:
                rows = {
                    name: (*row[:at], other.get(name, (0,) * width)[at], *row[at + 1 :]) for name, row in table.items()
                }
            return dict(sorted(rows.items(), key=lambda row: -row[1][1]))

        return made

    return answer


def diagnosed(at):
    def answer(mistake):
        made = column(lambda events: diagnose_mistakes.right(events).table, at)(mistake)
        return lambda events: (made(events), *diagnose_mistakes.right(events)[1:])

    return answer


def places(mistake):
    """Sizes as they are, or of a pair (segments, largest size)."""

    def made(layers, kept, inside):
        sizes = mistake(layers, kept, inside)
        if sizes is None:
            return exercises.place_checkpoints(layers, kept, inside)
        if isinstance(sizes, list):
            return sizes
        segments, largest = sizes
        rest = layers - largest
        return [largest, *(rest // (segments - 1) + (i < rest % (segments - 1)) for i in range(segments - 1))]

    return made


class TestLab01(PlantedLists):
    LISTS = (
        *(
            (check.gpu_time, of_a_trace(traces.GPU_TIME, mistakes), instead(gpu_time_mistakes.right, at))
            for at, mistakes in enumerate(
                (gpu_time_mistakes.launches, gpu_time_mistakes.busy, gpu_time_mistakes.exposed)
            )
        ),
        *(
            (check.bound_by, by_number(mistakes, OPERATION, 1.0, 1.0, 1.0), instead(bound_by_mistakes.right, at))
            for at, mistakes in enumerate((bound_by_mistakes.bound, bound_by_mistakes.shares))
        ),
        *(
            (check.mfu, by_number(mistakes, SIZES["small"], 64, 1.0, 1e12), instead(mfu_mistakes.right, at))
            for at, mistakes in enumerate((mfu_mistakes.flops, mfu_mistakes.share))
        ),
        *(
            (check.diagnose, of_a_trace(traces.DIAGNOSE, mistakes), diagnosed(at))
            for at, mistakes in (
                (None, diagnose_mistakes.names),
                (0, diagnose_mistakes.launches),
                (1, diagnose_mistakes.us),
                (2, diagnose_mistakes.spans),
            )
        ),
        *(
            (check.place_checkpoints, by_number(mistakes, 4, 1, 4), places)
            for mistakes in (place_checkpoints_mistakes.sums, place_checkpoints_mistakes.peaks)
        ),
        (check.peak_bytes, by_number(peak_bytes_mistakes.mistakes, SIZES["small"], 1, 64, 2), lambda mistake: mistake),
        (check.scaled_update, scaled_update_mistakes.MISTAKES, lambda mistake: lambda *given: mistake(*given)),
        (check.diagnose, of_a_trace(traces.DIAGNOSE, diagnose_mistakes.slow), instead(diagnose_mistakes.right, 1)),
        (check.diagnose, of_a_trace(traces.DIAGNOSE, diagnose_mistakes.why), instead(diagnose_mistakes.right, 2)),
    )
