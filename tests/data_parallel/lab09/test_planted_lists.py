"""The mistakes that exercise 2 of lab 09 looks for, each planted as an answer."""

from labs_helpers.data_parallel.lab09 import checks as check
from labs_helpers.data_parallel.lab09.checks import piece_mistakes
from tests.planted import PlantedLists


def in_shard_size(size_of):
    """The right pieces, in shards of another size than is returned."""
    return lambda numels, ranks, rank: (size_of(numels, ranks, rank), piece_mistakes.pieces_of(numels, ranks, rank)[1])


def of_layout(pieces):
    return lambda numels, ranks, rank: pieces(numels, ranks, rank)


class TestLab09(PlantedLists):
    LISTS = (
        (check.shard_pieces, piece_mistakes.MISTAKES.items(), of_layout),
        (check.shard_pieces, piece_mistakes.SIZES.items(), in_shard_size),
    )
