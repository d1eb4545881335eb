"""Test the chart of the time model's losses."""

from labs_helpers.gemm.lab03.pictures import draw_losses


def test_curves_are_sorted_and_say_their_median_and_tail():
    fig = draw_losses({"one": [0.2, 0.0, 0.0, 0.1], "other": [0.0]})
    first, second = fig.axes[0].get_lines()
    assert list(first.get_ydata()) == [0, 0, 10, 20] and list(first.get_xdata()) == [25, 50, 75, 100]
    assert first.get_label() == "one: median 5.0%, 95% of shapes below 18.5%" and list(second.get_xdata()) == [100]
