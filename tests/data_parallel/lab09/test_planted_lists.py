"""The mistakes that exercises 2 and 5 of lab 09 look for, each planted as an answer."""

from labs_helpers.data_parallel.lab09 import checks as check
from labs_helpers.data_parallel.lab09.checks import ex5_sent_per_step, piece_mistakes
from tests.planted import PlantedLists


def in_shard_size(size_of):
    """The right pieces, in shards of another size than is returned."""
    return lambda numels, ranks, rank: (size_of(numels, ranks, rank), piece_mistakes.pieces_of(numels, ranks, rank)[1])


def of_layout(pieces):
    return lambda numels, ranks, rank: pieces(numels, ranks, rank)


def beside_the_right(sent):
    """All schemes, of which a mistake has some."""
    return lambda *arguments: {**ex5_sent_per_step.sent(*arguments), **sent(*arguments)}


class TestLab09(PlantedLists):
    LISTS = (
        (check.shard_pieces, piece_mistakes.MISTAKES.items(), of_layout),
        (check.shard_pieces, piece_mistakes.SIZES.items(), in_shard_size),
        (check.sent_per_step, ex5_sent_per_step.MISTAKES, beside_the_right),
    )
