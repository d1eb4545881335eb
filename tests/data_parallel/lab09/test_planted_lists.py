"""Plant each mistake that the checks of exercises 2, 3, 5 and 12 of lab 09 name, as an answer."""

from torch import nn

from labs_helpers.data_parallel.lab09 import checks as check
from labs_helpers.data_parallel.lab09.checks import (
    ex5_sent_per_step,
    ex12_tokens_to_hide,
    group_mistakes,
    piece_mistakes,
)
from tests.planted import PlantedLists


def in_shard_size(size_of):
    """The right pieces, in shards of another size than is returned."""
    return lambda numels, ranks, rank: (size_of(numels, ranks, rank), piece_mistakes.pieces_of(numels, ranks, rank)[1])


def of_layout(pieces):
    return lambda numels, ranks, rank: pieces(numels, ranks, rank)


def beside_the_right(sent):
    """All schemes, of which a mistake has some."""
    return lambda *arguments: {**ex5_sent_per_step.sent(*arguments), **sent(*arguments)}


def on_a_shard(mistake):
    """The tensors and groups that a mistake describes, right where it says nothing of them."""

    def sharded_groups(shard, pieces, groups):
        given = len(shard), pieces, groups
        found = {**group_mistakes.described(*given), **mistake(*given)}
        tensors = [nn.Parameter(shard[at : at + numel]) for at, numel in found["tensors"]]
        return tensors, [{**group, "params": [tensors[i] for i in group["params"]]} for group in found["groups"]]

    return sharded_groups


class TestLab09(PlantedLists):
    LISTS = (
        (check.shard_pieces, piece_mistakes.MISTAKES.items(), of_layout),
        (check.shard_pieces, piece_mistakes.SIZES.items(), in_shard_size),
        (check.sharded_groups, group_mistakes.MISTAKES, on_a_shard),
        (check.tokens_to_hide, ex12_tokens_to_hide.MISTAKES, lambda mistake: lambda *given: mistake(*given)),
        (check.sent_per_step, ex5_sent_per_step.MISTAKES, beside_the_right),
    )
