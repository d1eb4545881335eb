"""What common mistakes make of the parts of a trace, and of the launches that belong to each."""

from __future__ import annotations

from collections.abc import Callable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.part_costs import Parts, again, inside, launched, owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import of

LATER = "a piece belongs to the part that launched it, and runs later than it: where did its launch begin?"
THREAD = "what another thread launches meanwhile is not this part's: compare the launch's tid with the part's"


def name_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "a part that launched nothing is there too, with zeros", parts([pair for pair in given if pair[1]])
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op"))
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op", "user_annotation"))
    numbered = "a name that stands there again is the same part: add up by name, not by number"
    yield numbered, dict.fromkeys(event["args"]["External id"] for event in of(events, "user_annotation"))
    for key in (None, "", "other", "none", "None"):
        yield "what was launched in no part is left out", parts(given) | {key: ()}


def launch_causes(events: list[Event]) -> Candidates:
    ranges, given, work = of(events, "user_annotation"), owned(events), of(events, *GPU_WORK)
    calls = {id(piece): launch for piece, launch in launched(events)}
    operations = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    shadows = of(events, "gpu_user_annotation")

    def by(belongs: Callable[[Event, Event], bool]) -> Parts:
        return parts([(part, [piece for piece in work if belongs(part, piece)]) for part in ranges])

    def of_shadow(part: Event, piece: Event) -> bool:
        return any(inside(s, piece) for s in shadows if s["args"]["External id"] == part["args"]["External id"])

    def of_operation(part: Event, piece: Event) -> bool:
        operation = operations.get(piece["args"].get("External id"))
        return operation is not None and operation["tid"] == part["tid"] and inside(part, operation)

    yield LATER, by(inside)
    yield LATER, by(lambda part, piece: inside(part, piece) or inside(piece, part))
    yield LATER, by(lambda part, piece: inside(part, piece) and piece["ts"] + piece["dur"] <= part["ts"] + part["dur"])
    yield LATER, by(lambda part, piece: inside(part, {"ts": piece["ts"] + piece["dur"] / 2}))
    yield LATER, by(lambda part, piece: part is max(ranges, key=lambda one: (one["ts"] <= piece["ts"], one["ts"])))
    yield THREAD, by(lambda part, piece: id(piece) in calls and inside(part, calls[id(piece)]))
    yield "a range over the GPU is no proof: others' work runs meanwhile, and not every part has one", by(of_shadow)
    yield "not every piece has an operation: its launch has the same correlation", by(of_operation)
    nothing = (
        "no launch was found in any part: it has the piece's correlation and the part's tid; a piece's is its stream"
    )
    yield nothing, by(lambda part, piece: False)

    def begun(part: Event, piece: Event) -> bool:
        launch = calls.get(id(piece))
        earlier = [one for one in ranges if launch and one["tid"] == launch["tid"] and one["ts"] <= launch["ts"]]
        return bool(earlier) and part is max(earlier, key=lambda one: one["ts"])

    yield "a part ends: what is launched behind it is in none", by(begun)
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are pieces of GPU work too", parts([(part, of(pieces, *kinds)) for part, pieces in given])
    graph = "one launch may start several pieces, all with its correlation: go over the pieces, not over the launches"
    for one in ({e["args"]["correlation"]: e for e in work}, {e["args"]["correlation"]: e for e in work[::-1]}):
        yield (
            graph,
            parts([(part, [e for e in pieces if e is one[e["args"]["correlation"]]]) for part, pieces in given]),
        )
    yield from again(given)
    counted = "launches are pieces of GPU work: some calls of the runtime wait, and one may start several"
    for name in ("", "Launch", "LaunchKernel"):
        named = [event for event in of(events, "cuda_runtime") if name in event["name"]]
        yield (
            counted,
            parts([(part, [e for e in named if e["tid"] == part["tid"] and inside(part, e)]) for part in ranges]),
        )
    distinct = "each piece counts, also where the name comes again"
    yield distinct, parts(given, count=lambda pieces: len({piece["name"] for piece in pieces}))
