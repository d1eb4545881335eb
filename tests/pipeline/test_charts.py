"""Timelines and stashes as figures: every computation is drawn once, and no text leaves the figure."""

from labs_helpers.pipeline.charts import draw_stashes, draw_timelines
from labs_helpers.pipeline.schedules import gpipe, interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import Times, simulate
from tests.data_parallel.charts.test_plans import texts_of

FOUR = [
    simulate(gpipe(4, 8)), simulate(one_f_one_b(4, 8)), simulate(interleaved(4, 8), Times(0.5, 0.5, 0.5)),
    simulate(zero_bubble(4, 8)),
]  # fmt: skip


def test_a_panel_per_timeline_shows_every_computation():
    fig = draw_timelines(FOUR, "Interleaving halves the bubble")
    said = texts_of(fig)
    assert "Interleaving halves the bubble" in said
    assert "GPipe: 27% of the time is bubble" in said
    assert "interleaved ×2: 16% of the time is bubble" in said
    for ax, timeline in zip(fig.axes, FOUR, strict=True):
        drawn = sum(len(bars.get_paths()) for bars in ax.collections)
        assert drawn == len(timeline.bars)
        assert ax.get_xlim() == (0, 33)


def test_stashes_over_time():
    fig = draw_stashes(FOUR[:2], "1F1B stashes 4 micro-batches, GPipe 8")
    (ax,) = fig.axes
    assert [max(line.get_ydata()) for line in ax.lines] == [8, 4]
    texts_of(fig)
