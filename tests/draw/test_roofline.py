"""Names on a roofline stand beside one another, and beside the roofs."""

import pytest

from labs_helpers.draw import figures
from labs_helpers.draw.roofline import plot_roofline
from labs_helpers.measure.roofline import Work, attainable
from labs_helpers.measure.roofs import Roofs

H200 = Roofs(bandwidth=4.8e12, flops=989e12, dtype="float16")
FIVE = [
    Work("ReLU", 2**24, 8 * 2**24),
    Work("vector add", 2**24, 12 * 2**24),
    Work("softmax", 8 * 2**24, 8 * 2**24),
    Work("row sum", 2**24, 2**26),
    Work("matmul", 2 * 2048**3, 12 * 2048**2),
]


@pytest.mark.parametrize("roofs, share", [(Roofs(15e9, 100e9, "float32"), 0.97), (H200, 0.5), (H200, 0.97)])
def test_five_operations_are_labelled_without_overlap(roofs, share):
    points = {work.name: (work.intensity, share * attainable(work.intensity, roofs)) for work in FIVE}
    ax = plot_roofline({"2-core CPU (interpreter)": (roofs, points)})
    ax.figure.draw_without_rendering()
    texts = [text for text in ax.texts if text.get_text()]
    assert {work.name for work in FIVE} < {text.get_text() for text in texts}
    assert any(f"{roofs.ridge:.3g}" in text.get_text() for text in texts)
    boxes = [text.get_window_extent() for text in texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert ax.figure.bbox.containsx(box.x0) and ax.figure.bbox.containsx(box.x1)
    drawn = {tuple(line.get_xydata()[0]) for line in ax.get_lines() if line.get_label() == "_point"}
    assert drawn == set(points.values())
    assert len(figures.png(ax.figure)) < 60_000


@pytest.mark.parametrize("bandwidth, rate", [(8e9, 60e9), (31e9, 330e9), (400e9, 12e12)])
def test_no_name_is_written_over_a_roof_of_another_machine(bandwidth, rate):
    machines = {}
    for label, roofs in {"CPU, PyTorch": Roofs(bandwidth, rate, "float32"), "NVIDIA H200, recorded": H200}.items():
        machines[label] = roofs, {work.name: (work.intensity, 0.8 * attainable(work.intensity, roofs)) for work in FIVE}
    ax = plot_roofline(machines)
    ax.figure.draw_without_rendering()
    roof_lines = [line for line in ax.get_lines() if line.get_label() == "_roof"]
    paths = [line.get_path().transformed(line.get_transform()) for line in roof_lines]
    named = [text for text in ax.texts if text.get_text() in machines or text.get_text().startswith("ridge")]
    assert len(named) == 4
    for text in named:
        assert not any(path.intersects_bbox(text.get_window_extent(), filled=False) for path in paths), text


def test_what_has_no_place_on_logarithmic_scales_is_refused():
    with pytest.raises(ValueError, match="copy: intensity 0"):
        plot_roofline({"H200": (H200, {"copy": (0, 1e9)})})
