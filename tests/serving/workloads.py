"""A small model, requests of all kinds, and what each of them generates alone, recomputed without a cache."""

import dataclasses
import functools

import torch
from hypothesis import strategies as st

from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.sampling import choose
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import uniform
from tests.transformer.independent import GROUPED, randomised

BYTES = dataclasses.replace(GROUPED, vocabulary=256)
ORIGIN = torch.randint(60, (40,), generator=torch.Generator().manual_seed(3)).tolist()


@functools.cache
def model_of(config=GROUPED, dtype=torch.float64, seed=0):
    return randomised(Transformer(config), seed).to(dtype)


@functools.cache
@torch.no_grad()
def alone(prompt, how, config=GROUPED):
    """Return the tokens of one request from a forward pass over all tokens so far for each."""
    model, tokens, new = model_of(config), torch.tensor(prompt), []
    columns = [[how.temperature], [how.top_k or 0], [how.top_p]]
    for index in range(how.max_tokens):
        u = torch.tensor([uniform(how.seed or 0, 0, index)])
        new.append(int(choose(model(tokens[None])[:, -1], u, *map(torch.tensor, columns))))
        tokens = torch.cat([tokens, torch.tensor(new[-1:])])
    return tuple(new)


@st.composite
def requests(draw):
    """A prompt and how to go on: prompts of one token and of all but one, and some with equal beginnings."""
    prompt = ORIGIN[: draw(st.one_of(st.sampled_from([1, 8, 12, 16, 39]), st.integers(1, 39)))]
    if draw(st.booleans()):
        prompt = [*prompt[:-1], draw(st.integers(0, 2))]
    left = 40 - len(prompt)
    count = draw(st.one_of(st.just(1), st.just(left), st.integers(1, left)))
    how = draw(st.sampled_from([{"temperature": 0}, {"temperature": 0}, {}, {"temperature": 0.7, "top_p": 0.8}]))
    return tuple(prompt), SamplingParameters(count, seed=draw(st.integers(0, 2)), **how)


workloads = st.lists(st.tuples(requests(), st.integers(0, 4), st.none() | st.integers(0, 12)), min_size=1, max_size=9)
