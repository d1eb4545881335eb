"""A figure with sliders; moving a slider redraws the figure in the same place.

    sliders.show("03_tile", lambda BLOCK_M: pictures.draw_tile(BLOCK_M), BLOCK_M=([64, 128], 128))

At first the figure shows the initial value of each slider. That figure is stored in the file, and appears on pages, on
GitHub and in kernels without widgets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from labs_helpers.draw import figures


def show(name: str, draw: Callable[..., Figure], **values: tuple[Sequence[Any], Any]) -> None:
    """Show `draw(**{…})` as `figures.finish` does, with one slider per argument: (the values, the initial value).

    No sliders are shown if LABS_SLIDERS is 0, as in notebooks that are executed to be stored or compared.
    """
    first = {argument: begin for argument, (_, begin) in values.items()}
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or os.environ.get("LABS_SLIDERS") == "0":
        figures.finish(draw(**first), name)
        return
    import ipywidgets  # type: ignore[import-untyped]
    from IPython.display import display

    moved = {
        argument: ipywidgets.SelectionSlider(
            options=list(some), value=begin, description=argument, continuous_update=False
        )
        for argument, (some, begin) in values.items()
    }

    def again(change: Any) -> None:
        now = {argument: slider.value for argument, slider in moved.items()}
        figures.finish(draw(**now), name, place=name, update=True)

    for slider in moved.values():
        slider.observe(again, "value")
    display(ipywidgets.VBox(list(moved.values())))
    figures.finish(draw(**first), name, place=name)
