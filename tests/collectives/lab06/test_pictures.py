import numpy as np

from labs_helpers.collectives.lab06.pictures import draw_bytes, draw_fit
from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures


def test_bytes_are_bars_and_a_prediction_is_drawn_where_there_is_one():
    sent = {"naive": [56000] + [8000] * 7, "ring": [14000] * 8}
    for prediction in (None, Prediction("fewer", None), Prediction("fewer", 0), Prediction("fewer", -1)):
        (ax,) = draw_bytes(sent, 8000, prediction).axes
        assert [bar.get_height() for bar in ax.patches] == sent["naive"] + sent["ring"]
        assert len(ax.lines) == 1
    (ax,) = draw_bytes(sent, 8000, Prediction("fewer", 4)).axes
    assert ax.lines[-1].get_ydata() == [14000]


def test_the_fit_is_drawn_through_its_points():
    nbytes = np.array([8, 1024, 65536])
    fig = draw_fit(nbytes, 1e-6 + 1e-10 * nbytes, 1e-6, 1e-10)
    points, curve, _ = fig.axes[0].lines
    assert list(points.get_xdata()) == list(nbytes)
    assert np.allclose([curve.get_ydata()[0], curve.get_ydata()[-1]], [points.get_ydata()[0], points.get_ydata()[-1]])
    assert len(figures.png(fig)) < 60_000
