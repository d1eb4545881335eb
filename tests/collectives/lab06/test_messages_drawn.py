"""Test that the drawings show the messages that were sent, and the effect of each collective."""

import numpy as np
import pytest

from labs_helpers.collectives.lab06.pictures import COLLECTIVES, before_and_after, draw_collective, draw_messages
from labs_helpers.practice import Deadlock, practice


def arrows(fig) -> list:
    return [text for text in fig.axes[0].texts if text.arrow_patch is not None]


def words(fig) -> list[str]:
    fig.draw_without_rendering()
    return [text.get_text() for ax in fig.axes for text in ax.texts if text.get_text()]


def pairs(comm, counts):
    for count in counts:
        comm.Sendrecv(np.zeros(count), comm.rank ^ 1, 0, np.zeros(count), comm.rank ^ 1)
    comm.Barrier()


def test_an_arrow_a_message_from_where_it_left_to_where_it_came():
    fig = draw_messages(practice(pairs, 4, (3, 3)))
    assert len(arrows(fig)) == 8 and not words(fig)
    assert {(arrow.xyann, arrow.xy) for arrow in arrows(fig)} == {
        ((step, rank), (step + 1, rank ^ 1)) for step in range(2) for rank in range(4)
    }
    assert fig.axes[0].get_title("left") == "8 messages of 24 bytes, 2 steps"


def test_bytes_are_written_where_they_differ():
    fig = draw_messages(practice(pairs, 2, (1, 200)), "pairs")
    assert words(fig) == ["8", "8", "1,600", "1,600"] and fig.axes[0].get_title("left") == "pairs"


def test_a_deadlock_can_be_drawn():
    with pytest.raises(Deadlock) as caught:
        practice(lambda comm: comm.Send(np.zeros(1), (comm.rank + 1) % comm.size), 3)
    fig = draw_messages(caught.value.practice)
    assert len(arrows(fig)) == 3 and {arrow.arrow_patch.get_linestyle() for arrow in arrows(fig)} == {"--"}
    assert "3 never received" in fig.axes[0].get_title("left")
    fig.draw_without_rendering()


def test_nothing_sent_is_drawn_too():
    assert not arrows(draw_messages(practice(lambda comm: None, 1)))


@pytest.mark.parametrize("size", [1, 3, 4])
def test_collectives_do_what_their_definition_says(size):
    ranks = range(size)
    before, after = before_and_after("alltoall", size)
    assert all(after[r][c] == before[c][r] for r in ranks for c in ranks)
    scattered = before_and_after("reduce_scatter", size)[1]
    gathered = before_and_after("allgather", size)[1]
    for r in ranks:
        assert [bool(text) for text in scattered[r]] == [c == r for c in ranks] and scattered[r][r] == f"Σ{r}"
        assert gathered[r] == gathered[0] and all(gathered[0])
    assert before_and_after("allreduce", size)[1] == [[f"Σ{c}" for c in ranks]] * size
    assert before_and_after("broadcast", size)[1] == [before_and_after("broadcast", size)[0][0]] * size


def test_every_collective_is_drawn_with_its_cells():
    fig = draw_collective(*COLLECTIVES, size=3)
    assert len(fig.axes) == len(COLLECTIVES)
    shown = words(fig)
    assert shown.count("Σ2") == 1 + 3 + 1  # reduce, all-reduce, reduce-scatter
    with pytest.raises(ValueError, match="allreduce"):
        draw_collective("allredcue")
    with pytest.raises(ValueError, match="1 to 26"):
        draw_collective("gather", size=27)
