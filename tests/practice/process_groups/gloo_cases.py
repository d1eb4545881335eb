"""Calls that are made on practice ranks and on real ones: the results of each collective, and its refusals. Pickled
by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8")
OPERATIONS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "BOR", "BAND", "BXOR")


def values(group, rank, whole_numbers):
    """{case: tensors or the kind of error} of every collective, waited for at once and later. whole_numbers: whose sums
    are the same in any order."""
    import torch
    import torch.distributed as dist

    size, me, found = dist.get_world_size(group), dist.get_rank(group), {}
    generator = torch.Generator().manual_seed(rank)

    def draw(*shape, dtype="float32"):
        if whole_numbers or not dtype.startswith("float"):
            return torch.randint(1, 6, shape, generator=generator).to(getattr(torch, dtype))
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(getattr(torch, dtype))

    def call(case, outputs, collective, *arguments, defined=True, **settings):
        copies = [x.clone() for x in outputs]
        try:
            collective(*arguments, group=group, async_op=True, **settings).wait()
        except (RuntimeError, ValueError, TypeError) as error:
            found[case] = type(error).__name__
            return
        later = [x.clone() for x in outputs]
        for x, copy in zip(outputs, copies, strict=True):
            x.copy_(copy)
        collective(*arguments, group=group, **settings)
        if defined:
            assert all(torch.equal(x, y) for x, y in zip(outputs, later, strict=True)), case
            found[case] = later

    for dtype in DTYPES:
        for name in OPERATIONS:
            operation = getattr(dist.ReduceOp, name)
            x = draw(5, dtype=dtype)
            call(f"all_reduce {dtype} {name}", [x], dist.all_reduce, x, op=operation)
            if name in ("SUM", "AVG", "MAX"):
                out = torch.zeros(3, dtype=x.dtype)
                whole = draw(3 * size, dtype=dtype)
                call(
                    f"reduce_scatter_tensor {dtype} {name}", [out], dist.reduce_scatter_tensor, out, whole, op=operation
                )
        x = draw(2, 3, dtype=dtype).t()
        call(f"broadcast {dtype}, transposed", [x], dist.broadcast, x, group_src=size - 1)
        out, x = torch.zeros(2 * size, 3, dtype=x.dtype), draw(2, 3, dtype=dtype)
        call(f"all_gather_into_tensor {dtype}", [out], dist.all_gather_into_tensor, out, x)
        parts = [torch.zeros(2, 3, dtype=x.dtype) for _ in range(size)]
        call(f"all_gather {dtype}", parts, dist.all_gather, parts, x)
    whole = torch.zeros(2 * size)
    whole[2 * me : 2 * me + 2] = draw(2)
    call("all_gather_into_tensor in place", [whole], dist.all_gather_into_tensor, whole, whole[2 * me : 2 * me + 2])
    x = draw(7)
    call("reduce to 1", [x], dist.reduce, x, group_dst=1, defined=me == 1)
    parts, out = [draw(2, 2) for _ in range(size)], torch.zeros(2, 2)
    call("reduce_scatter", [out], dist.reduce_scatter, out, parts)
    call("scatter", [out], dist.scatter, out, parts if me == 0 else None, group_src=0)
    call("gather", parts if me == 1 else [], dist.gather, out, parts if me == 1 else None, group_dst=1)
    x = draw()
    call("all_reduce of a number", [x], dist.all_reduce, x)
    everyone = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "text": "x" * rank}, group=group)
    objects = [rank, "text"] if me == 1 else [None, None]
    dist.broadcast_object_list(objects, group_src=1, group=group)
    dist.barrier(group=group)
    found["objects"] = (everyone, objects, me, size, dist.get_backend(group))
    return found


def refused(group, rank):
    """Which of these calls raise, and where: on every rank before anything is sent."""
    import torch
    import torch.distributed as dist

    n, size = torch.zeros, dist.get_world_size(group)
    gather, scatter = dist.all_gather_into_tensor, dist.reduce_scatter_tensor
    calls = {
        "stacked": lambda: gather(n(size, 2, 3), n(2, 3), group=group),
        "flat for two dimensions": lambda: gather(n(6 * size), n(2, 3), group=group),
        "short": lambda: gather(n(2 * size - 1), n(2), group=group),
        "other dtype": lambda: gather(n(2 * size).double(), n(2), group=group),
        "not divisible": lambda: scatter(n(2), n(2 * size + 1), group=group),
        "scattered dtype": lambda: scatter(n(2).double(), n(2 * size), group=group),
        "short list": lambda: dist.all_gather([n(2)] * (size - 1), n(2), group=group),
        "list of other shapes": lambda: dist.all_gather([n(1, 2)] * size, n(2), group=group),
        "list of other dtypes": lambda: dist.all_gather([n(2).double()] * size, n(2), group=group),
        "short input list": lambda: dist.reduce_scatter(n(2), [n(2)] * (size - 1), group=group),
        "no such src": lambda: dist.broadcast(n(2), src=7, group=group),
        "no such group_src": lambda: dist.broadcast(n(2), group_src=7, group=group),
        "no root": lambda: dist.broadcast(n(2), group=group),
        "two roots": lambda: dist.broadcast(n(2), src=0, group_src=0, group=group),
        "op in words": lambda: dist.all_reduce(n(2), op="sum", group=group),
        "no tensor": lambda: dist.all_reduce(None, group=group),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
        except (RuntimeError, ValueError, TypeError):
            found[name] = True
    return sorted(found), sorted(calls)


def on_gloo(comm):
    """(values of three ranks, of two of them, what is refused) on the ranks of `comm`, each a process"""
    import warnings

    import torch.distributed as dist

    from labs_helpers.communication.torch_distributed import start

    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)
    start(comm, "gloo")
    try:
        group, pair, rank = dist.group.WORLD, dist.new_group([0, 1]), comm.rank
        return values(group, rank, True), values(pair, rank, False) if rank < 2 else None, refused(group, rank)
    finally:
        dist.destroy_process_group()
