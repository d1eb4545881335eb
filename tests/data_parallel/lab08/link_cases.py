"""The functions that test_link.py runs on two ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])
ALPHA, BETA = 2e-3, 1e-7


def sent(comm):
    """Run three all-reduces over a link, and one without a cost; return the sums and the messages."""
    import torch
    import torch.distributed as dist

    from labs_helpers.communication.torch_distributed import start
    from labs_helpers.data_parallel.lab08.link import the_link

    start(comm, "gloo")
    link = the_link()
    link.over(link.carrier, ALPHA, BETA)
    given = [torch.full((n,), comm.rank + 1.0) for n in (1000, 10, 500)]
    started = [dist.all_reduce(x, group=link, async_op=True) for x in given[:2]]
    early = started[1].is_completed()
    for work in started:
        work.wait()
    dist.all_reduce(given[2], group=link)
    notes = link.taken()
    link.over(link.carrier, 0.0, 0.0)
    free = torch.ones(3)
    dist.all_reduce(free, group=link, async_op=True).get_future().wait()
    return [x.unique().tolist() for x in (*given, free)], early, notes, len(link.taken()), dist.get_world_size(link)


def raced(comm):
    """Return the records of the lab's ways over a link, with the reference functions."""
    from labs_helpers.data_parallel.lab08 import exercises
    from labs_helpers.data_parallel.lab08.ways import measure_ways

    functions = {name: getattr(exercises, name) for name in exercises.__all__}
    options = {"size": "tiny", "batch": 1, "length": 16, "rounds": 1, "bucket_mb": 0.5, "link": "a link"}
    return measure_ways(functions, alpha=1e-4, beta=1e-10, **options)
