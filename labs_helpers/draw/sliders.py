"""A figure with sliders: moving one draws it again, in the same place.

    sliders.show("03_tile", lambda BLOCK_M: pictures.draw_tile(BLOCK_M), BLOCK_M=([64, 128], 128))

The figure is an ordinary one, at the values that each slider begins with: it is what stays in the file, and what pages,
GitHub and kernels without widgets show.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from labs_helpers.draw import figures


def show(name: str, draw: Callable[..., Figure], **values: tuple[Sequence[Any], Any]) -> None:
    """Show `draw(**{…})` as `figures.finish` does, under a slider for each argument: (the values, the first).

    No slider is shown where LABS_SLIDERS is 0, as where notebooks are executed to be stored or compared.
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
