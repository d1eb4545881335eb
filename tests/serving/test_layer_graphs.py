"""Test the forward pass over chunks in pieces, without graphs, against the one in one piece."""

import pytest
import torch

from labs_helpers.serving import layer_graphs
from labs_helpers.serving.chunks import ChunkAttention, Span
from labs_helpers.serving.layer_graphs import MOST, STEP, LayerGraphs, padded
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.transformer.decode_operations import PLAIN
from labs_helpers.transformer.decode_step import RowsForward
from labs_helpers.transformer.decoding import captured
from labs_helpers.transformer.model import Transformer
from tests.transformer.independent import GROUPED, randomised

SPANS = [Span(0, 5, [3, 1]), Span(4, 9, [5, 2, 4])]


@torch.no_grad()
@pytest.mark.parametrize("model", [randomised(Transformer(GROUPED))])
def test_pieces_compute_what_the_whole_pass_does(model, monkeypatch):
    monkeypatch.setattr(layer_graphs, "MOST", 48)
    model = model.double()
    generator, device = torch.Generator().manual_seed(0), torch.device("cpu")
    forward = RowsForward(model, PLAIN, 64)
    found = []
    for pad in (0, 6):
        cache = PagedCache(model, 6, 4)
        cache.k.normal_(generator=generator.manual_seed(1))
        cache.v.normal_(generator=generator)
        tokens = torch.randint(GROUPED.vocabulary, (10,), generator=generator.manual_seed(2))
        attend = ChunkAttention(SPANS, 4, device, pad=pad)
        if pad:
            pieces = LayerGraphs(forward, cache, kernels=False, graph=False)
            for _ in range(2):  # what the last pass left does not matter
                x = pieces.features(torch.cat([tokens, tokens[:pad]]), attend)
        else:
            x = forward.features(tokens, attend.positions, cache.k, cache.v, attend)
        found.append((x[:10], cache.k[:, 1:], cache.v[:, 1:]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_graphs_that_share_a_pool_share_its_memory():
    large, total = torch.zeros(2**26, device="cuda"), torch.zeros(1, device="cuda")  # 256 MB
    before, pool = torch.cuda.memory_reserved(), torch.cuda.graph_pool_handle()
    graphs = [captured(lambda: total.copy_((large + 1).sum()), lambda: None, pool) for _ in range(8)]
    assert len(graphs) == 8 and torch.cuda.memory_reserved() - before < 4 * large.nbytes


def test_rows_are_padded_to_a_few_numbers():
    assert [padded(rows) for rows in (1, STEP, STEP + 1, MOST, MOST + 1)] == [STEP, STEP, 2 * STEP, MOST, MOST + 1]
