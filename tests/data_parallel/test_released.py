"""Wrappers and stages release all parameters after training."""

import gc
import weakref

import pytest
import torch
from torch import nn

from labs_helpers.data_parallel import BucketedDDP, OverlappedDDP, ZeRO1, ZeRO2, ZeRO3
from labs_helpers.practice.process_groups import practice_process_groups

AHEAD = {"overlap_gather": True}
MADE = [(OverlappedDDP, {}), (BucketedDDP, {}), (ZeRO1, {}), (ZeRO1, AHEAD), (ZeRO2, {}), (ZeRO2, AHEAD),
        (ZeRO3, {"units": nn.Linear})]  # fmt: skip


@pytest.mark.parametrize("make, options", MADE, ids=lambda one: getattr(one, "__name__", "") or ",".join(one))
def test_a_dropped_model_is_gone(make, options):
    def train(group, rank):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        known = [weakref.ref(p) for p in model.parameters()]
        if issubclass(make, nn.Module):
            wrapper, optimizer = make(model, group, **options), torch.optim.AdamW(model.parameters())
        else:
            wrapper = optimizer = make(model, torch.optim.AdamW, group=group, lr=0.1, **options)
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            if wrapper is not optimizer:
                wrapper.finish()
            optimizer.step()
            optimizer.zero_grad()
        return known

    known = practice_process_groups(train, 1).results[0]
    gc.collect()
    assert len(known) == 4 and not any(one() is not None for one in known)
