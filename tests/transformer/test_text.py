"""Test the text: its content, the part held out, and that a seed determines the batches."""

import math
from collections import Counter
from itertools import islice

import pytest
import torch

from labs_helpers.transformer import text as module
from labs_helpers.transformer.text import batches, in_validation, text, validation_sample
from tests.transformer.bigram import bigram_loss


def test_two_parts_of_python():
    train, validation = text("train"), text("validation")
    assert train.dtype == torch.uint8 and len(train) > 3_000_000
    assert 0.04 < len(validation) / (len(train) + len(validation)) < 0.2
    for part in (train, validation):
        assert b"\ndef " in bytes(part[:200_000].tolist())


def test_a_length_that_the_text_does_not_have():
    for ask in (lambda: validation_sample(2, len(text("validation"))), lambda: next(batches("train", 2, 10**9, 0))):
        with pytest.raises(ValueError, match="length is .*, but has to be less than the .* bytes of the text"):
            ask()


def test_a_file_is_in_the_part_that_its_name_says(monkeypatch, tmp_path):
    names = [f"package/module_{i}.py" for i in range(40)] + ["test/a.py", "site-packages/b.py", "_sysconfigdata_x.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"<{name}>")
    monkeypatch.setattr(module.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    expected = sorted(names[:40])
    for split in ("train", "validation"):
        found = bytes(text.__wrapped__(split).tolist()).decode()
        mine = [name for name in expected if in_validation(name) == (split == "validation")]
        assert mine and found == "".join(f"<{name}>" for name in mine)


def test_a_machine_without_the_text_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(module.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(FileNotFoundError, match="no .py files of the standard library under"):
        text.__wrapped__("train")


def test_another_split_is_refused():
    with pytest.raises(ValueError, match="split is 'test'; it may be"):
        text("test")


def test_batches_are_text_and_the_byte_after():
    data = bytes(text("train").tolist())
    for x, y in islice(batches("train", 4, 32, seed=0), 3):
        assert x.shape == y.shape == (4, 32) and x.dtype == y.dtype == torch.int64
        assert torch.equal(x[:, 1:], y[:, :-1])
        assert all(bytes([*row.tolist(), last.item()]) in data for row, last in zip(x, y[:, -1], strict=True))


def test_the_seed_decides_the_batches():
    def three(seed):
        return torch.stack([x for x, _ in islice(batches("train", 4, 32, seed), 3)])

    assert torch.equal(three(1), three(1))
    assert not torch.equal(three(1), three(2))
    first, second, _ = three(1)
    assert not torch.equal(first, second)


def test_the_sample_reaches_both_ends():
    x, y = validation_sample(50, 16)
    assert x.shape == y.shape == (50, 16)
    assert torch.equal(x[0], text("validation")[:16].long())
    assert y[-1, -1] == text("validation")[-1]
    assert torch.equal(x, validation_sample(50, 16)[0])


def test_bigram_loss_agrees_with_a_count_by_hand():
    train = bytes(text("train").tolist())
    pairs, firsts = Counter(zip(train, train[1:], strict=False)), Counter(train[:-1])
    x, y = validation_sample(5, 40)
    by_hand = [
        -math.log((pairs[a, b] + 0.1) / (firsts[a] + 25.6))
        for a, b in zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)
    ]
    assert bigram_loss((x, y)) == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-6)


def test_bigram_loss_is_that_of_python():
    # 2.457 for Python 3.11; a unigram table has about 3.15.
    assert 2.3 < bigram_loss() < 2.6
