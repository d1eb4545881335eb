"""A second process group of a practice rank, beside the one that it has."""

from __future__ import annotations

from collections.abc import Sequence

import torch.distributed.distributed_c10d as c10d

from labs_helpers.data_parallel.practice import PracticeGroup


def second_group(group: PracticeGroup, ranks: Sequence[int]) -> PracticeGroup:
    """Of `ranks` of the same run, in that order, which this thread's rank is one of."""
    me, world = group._ranks[group._place], c10d._world
    made = PracticeGroup(group._baton, group._run, group._meetings, tuple(ranks), list(ranks).index(me))
    world.pg_map[made] = world.pg_map[group]
    world.pg_names[made] = f"practice {len(world.pg_names)}"
    world.pg_group_ranks[made] = {rank: place for place, rank in enumerate(ranks)}
    world.pg_backend_config[made] = world.pg_backend_config[group]
    return made
