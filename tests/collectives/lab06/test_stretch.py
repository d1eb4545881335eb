"""Test that the stretch's algorithms take the steps that its title names, and that only right answers are drawn."""

from labs_helpers.collectives.lab06.stretch import down_a_tree, draw_stretch, from_the_root, steps


def names(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_steps():
    assert (steps(from_the_root, 16), steps(down_a_tree, 16), steps(down_a_tree, 6)) == (15, 4, 3)
    assert steps(lambda comm, data: None, 3) is None


def test_what_is_drawn(capsys):
    assert names(draw_stretch(from_the_root))[2] == "yours" and not capsys.readouterr().out
    assert len(names(draw_stretch(lambda comm, data: None))) == 2
    assert "to all of 2, 3, 4, 6, 8, 12, 16 ranks yet" in capsys.readouterr().out
    assert len(names(draw_stretch(lambda comm, data: comm.Recv(data, source=0)))) == 2
    assert "waits for a message" in capsys.readouterr().out
