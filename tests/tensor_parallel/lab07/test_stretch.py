"""Test lab 07's stretch: both MLPs are right and send the same number of bytes; wrong ones are reported and not
drawn."""

from labs_helpers.tensor_parallel.lab07 import stretch


def test_in_parts_as_many_bytes_are_sent_and_a_quarter_is_held():
    (sent, held), (sent_in_parts, held_in_parts) = (
        stretch.measured(stretch.all_reduced, False),
        stretch.measured(stretch.in_parts, True),
    )
    assert sent == sent_in_parts > 0
    assert held == stretch.RANKS * held_in_parts


def test_what_a_student_writes_is_drawn_or_told(capsys):
    assert len(stretch.draw_stretch(stretch.in_parts).axes[0].patches) == 3

    def not_scattered(x, up, down, group):
        return stretch.all_reduced(group.all_gather(x, 1), up, down, group)[0], lambda grad: grad

    def alone(x, up, down, group):
        return stretch.in_parts(x, 2 * up, down, group)

    for student, told in ((lambda *_: None, "still open"), (not_scattered, "has shape"), (alone, "is off by up to")):
        assert len(stretch.draw_stretch(student).axes[0].patches) == 2
        assert told in capsys.readouterr().out
