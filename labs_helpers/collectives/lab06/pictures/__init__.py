"""The drawings of lab 06: messages, collectives before and after, bytes per rank, and the fit of α and β."""

from labs_helpers.collectives.lab06.pictures.collectives import COLLECTIVES, before_and_after, draw_collective
from labs_helpers.collectives.lab06.pictures.counts import draw_bytes, draw_fit
from labs_helpers.collectives.lab06.pictures.messages import draw_messages
from labs_helpers.collectives.lab06.pictures.steps import draw_step, states

__all__ = [
    "COLLECTIVES",
    "before_and_after",
    "draw_bytes",
    "draw_collective",
    "draw_fit",
    "draw_messages",
    "draw_step",
    "states",
]
