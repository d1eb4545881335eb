"""The figures of lab 11 show what they are given."""

from labs_helpers.clinic.lab11 import pictures
from labs_helpers.clinic.monitoring import COMMANDS, METRICS

SPANS = {"data": [(0.0, 2.0)], "forward": [(2.0, 5.0), (6.0, 7.0)], "communication": [(4.0, 9.0)]}


def test_a_row_per_job_and_its_end():
    (ax,) = pictures.draw_parts({"one": SPANS, "two": {"data": [(0.0, 3.0)]}}, "T").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two"]
    assert (
        sum(len(bars.get_paths()) for bars in ax.collections if len(bars.get_paths()) and bars.get_facecolor().size)
        >= 5
    )


def test_ranks_leave_the_first_all_reduce_together():
    (ax,) = pictures.draw_waits([[100.0, 130.0], [5.0, 40.0]], [[110.0, 141.0], [6.0, 42.0]], "T").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    work = [bars.get_paths()[0].get_extents().x0 for bars in ax.collections[::2]]
    assert work == [10.0, 10.0]
    assert ax.get_xlim()[0] == 0


def test_memory_is_drawn_in_steps():
    timeline = {"points": [[0, 100], [10, 300], [20, 100], [40, 100]], "marks": [[20, "0"], [40, "1"]]}
    (ax,) = pictures.draw_alive({"job": timeline}, "T").axes
    assert list(ax.lines[0].get_xdata()) == [0.0, 0.5, 1.0, 2.0]


def test_segments_and_their_blocks_lie_below_the_request():
    refused = {"request": 30, "segments": [[20, []], [40, [[0, 10], [25, 15]]]]}
    (ax,) = pictures.draw_segments(refused, "T").axes
    request, *segments = ax.patches
    assert (request.get_width(), [bar.get_width() for bar in segments]) == (30, [20, 40])
    assert request.get_y() < segments[0].get_y() < segments[1].get_y()
    (blocks,) = (bars for bars in ax.collections if bars.get_paths())
    assert [path.get_extents().intervalx.tolist() for path in blocks.get_paths()] == [[0, 10], [25, 40]]
    assert {text.get_text() for text in ax.texts} == {" the request"} and ax.get_ylabel().startswith("2 segments")


def test_diagnoses_are_written_and_colored():
    rows = [
        ("a", "leak", {"guide": "healthy", "yours": "leak"}),
        ("b", "healthy", {"guide": "healthy", "yours": "leak"}),
    ]
    (ax,) = pictures.draw_diagnoses(rows, "T").axes
    assert [text.get_text() for text in ax.texts] == ["—", "leak", "—", "leak"]
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert colors[0] == colors[3] != colors[1] == colors[2]


def test_every_metric_and_question_is_whole():
    for row in (*METRICS, *COMMANDS):
        assert all(row)
