"""Events of allocations name the line, fit together, and add up to what is alive."""

import torch

from labs_helpers.measure.allocations import allocations


def test_a_list_that_grows_is_seen_with_its_line():
    kept = []

    def step():
        temporary = torch.ones(100)
        kept.append(temporary * 2)

    events = allocations(step, 3)
    made = [event for event in events if event[0] == "alloc"]
    assert [(number, nbytes) for _, number, _, nbytes, _ in made] == [
        (step, 400) for step in range(3) for _ in range(2)
    ]
    places = {place for *_, place in made}
    assert {place.partition(":")[0] for place in places} == {"test_allocations.py"} and len(places) == 2
    freed = {number for kind, _, number in (event[:3] for event in events) if kind == "free"}
    assert freed == {number for _, _, number, _, place in made if place == min(places)}


def test_memory_from_before_is_not_counted():
    x = torch.ones(10)
    assert allocations(lambda: x.add_(1), 2) == []
    assert [event[3] for event in allocations(lambda: x[:5] + 1, 1) if event[0] == "alloc"] == [20]
