import nbformat
import pytest
from nbclient import NotebookClient

from labs_helpers.collectives.lab06 import exercises as ring
from labs_helpers.collectives.lab06 import pictures as rings
from labs_helpers.draw import figures
from labs_helpers.gemm import Config
from labs_helpers.gemm.lab03 import exercises, pictures
from labs_helpers.labs import ROOT
from labs_helpers.measure.datasheet import DATASHEET

CELL = """
from labs_helpers.draw import figures, sliders
import ipywidgets
made = []
class Kept(ipywidgets.SelectionSlider):
    def __init__(self, **named):
        super().__init__(**named)
        made.append(self)
ipywidgets.SelectionSlider = Kept
sliders.show("moved", lambda n: figures.new(f"n is {n}")[0], n=([1, 2, 4], 2))
if made:
    made[0].value = 4
"""


@pytest.mark.parametrize("shown", [True, False])
def test_a_slider_changes_the_figure_in_its_place_and_the_file_holds_a_figure(shown, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("LABS_SLIDERS", "1" if shown else "0")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    *sliders, figure = notebook.cells[0].outputs
    assert [("application/vnd.jupyter.widget-view+json" in one.data) for one in sliders] == [True] * shown
    assert figure.metadata["image/png"]["alt"] == f"n is {4 if shown else 2}"


def test_a_tile_says_its_traffic_its_programs_per_sm_and_its_waves():
    def title(config, size):
        fig = pictures.draw_tile(config, size, exercises.resources, exercises.waves, DATASHEET["H200"])
        assert len(figures.png(fig)) < 30_000
        return fig.get_suptitle()

    # 512 tiles × 4096 × (128 + 256) elements of 2 bytes; 132 at once
    assert title(Config(128, 256, 64, num_warps=8), 4096) == "128×256×64 w8 s3: 1.61 GB loaded, 1 per SM, 4 waves"
    assert title(Config(256, 256, 128, num_stages=4), 4096) == "256×256×128 w4 s4: too large"
    assert all(title(Config(*[side] * 3), 8192) for side in (32, 64))


def test_each_step_of_a_ring_changes_one_chunk_per_rank_and_the_last_finishes_all():
    held = rings.states(ring.ring_allreduce, 4)
    assert len(held) == 7 and all(((a != b).sum(1) == 1).all() for a, b in zip(held, held[1:], strict=False))
    assert (held[0] == [[1], [10], [100], [1000]]).all() and (held[-1] == 1111).all()
    assert rings.draw_step(held, 3).get_suptitle() == "After step 3 of 6, 4 of 16 chunks are finished"
