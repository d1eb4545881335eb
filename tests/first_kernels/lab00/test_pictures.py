import re

import pytest

from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures
from labs_helpers.first_kernels.lab00 import in_flight, pictures, stretch, study
from labs_helpers.first_kernels.lab00.pictures import gpu
from labs_helpers.measure.datasheet import DATASHEET


def texts(fig) -> str:
    fig.draw_without_rendering()
    return "\n".join(text.get_text() for ax in fig.axes for text in [*ax.texts, ax.title, ax._left_title])


@pytest.mark.parametrize("name", DATASHEET)
def test_the_gpu_shows_its_own_numbers(name):
    sheet, fig = DATASHEET[name], pictures.draw_gpu(name)
    shown = texts(fig)
    for number in (
        f"{sheet.multiprocessors} ",
        f"registers: {sheet.registers_per_sm * 4 // 1024} KiB",
        f"shared memory: {sheet.shared_bytes_per_sm // 1024} KiB",
        f": {sheet.l2_bytes // 2**20} MiB",
        f"{sheet.bandwidth / 1e12:.3g} TB/s",
        f"{sheet.fp16_flops / 1e12:,.0f} TFLOP/s",
        f"{sheet.warp_size} threads",
    ):
        assert number in shown
    small = [p for p in fig.axes[0].patches if p.get_width() < 10]
    assert len(small) == sheet.multiprocessors


def test_without_a_known_gpu_the_h200_is_drawn(monkeypatch):
    machine = gpu.this_machine()
    for name, drawn in ((machine.name if machine.device == "cpu" else "a CPU", "H200"), ("Tesla T4", "T4")):
        monkeypatch.setattr(gpu, "this_machine", lambda name=name: type("M", (), {"name": name}))
        assert pictures.chip() == drawn


def test_every_program_is_in_one_wave_and_the_rest_is_idle():
    fig = pictures.draw_waves(20, 8)
    shown = {text.get_text() for text in fig.axes[0].texts}
    assert shown == {*map(str, range(20)), "4 SMs idle"}
    assert "idle" not in texts(pictures.draw_waves(16, 8))


def test_a_warp_fetches_4_sectors_of_a_row_and_32_of_a_column():
    fig = pictures.draw_warp((64, 1), 4)
    titles = [ax.get_title() or ax.get_title("left") for ax in fig.axes]
    assert "4 sectors\n128 bytes" in titles[0] and "32 sectors\n1,024 bytes" in titles[1]
    touched = [int((ax.images[0].get_array() == 2).sum()) for ax in fig.axes]
    assert touched == [32, 32]


def test_predictions_are_drawn_where_they_were_given():
    operation = {
        "name": "X + Y",
        "flops": 1e9,
        "bytes": 1e10,
        "median_ms": 5.0,
        "bound": "memory",
        "roof_bandwidth": 1e12,
        "roof_flops": 1e13,
        "dtype": "float32",
    }
    stride = {"stride": 1, "median_ms": 1.0, "itemsize": 4, "elements": 8}
    for value, marks in ((2.0, 1), (None, 0)):
        for fig in (
            pictures.draw_roofline({"here": [operation]}, {"X + Y": Prediction("", value)}),
            pictures.draw_strides({"here": [stride, {**stride, "stride": 2}]}, Prediction("", value)),
        ):
            hollow = [line for line in fig.axes[0].lines if line.get_markerfacecolor() == "none"]
            assert len(hollow) == marks
            assert figures.png(fig)


def test_latencies_stand_where_a_load_comes_from():
    shown = texts(pictures.draw_gpu("H200", {"L1": 20.4, "L2": 143.0, "DRAM": 335.0}))
    for text in ("L1: 20 ns", "60 MiB; 143 ns", "335 ns", "takes 16 times as long"):
        assert text in shown


def test_bytes_in_flight_by_warps_or_by_stages():
    assert in_flight.bytes_in_flight(64, 1) == in_flight.bytes_in_flight(32, 3) == in_flight.bytes_in_flight(16, 5)
    assert in_flight.bytes_in_flight(1, 1) == 512


def test_the_recorded_gpus_figures_state_what_the_text_says():
    (records,) = study.recorded("in flight").values()
    drawn = pictures.draw_in_flight("H200", records, 335.0, Prediction("", 20))
    assert "24 KiB in flight" in texts(drawn)
    assert len([line for line in drawn.axes[0].lines if line.get_markerfacecolor() == "none"]) == 1
    (records,) = study.recorded("waves").values()
    assert re.search(
        r"17th computing program per SM adds (9|1[0-3])% of a wave", texts(pictures.draw_wave_times("H200", records))
    )


def test_the_stretch_shows_an_own_kernel_once_there_is_one():
    assert "yours" not in _names(stretch.draw_stretch(lambda x, r: None))
    assert "yours" in _names(stretch.draw_stretch(stretch.add_norm))
    assert any("off by" in name for name in _names(stretch.draw_stretch(lambda x, r: stretch.add_norm(x, -r))))


def _names(fig) -> list[str]:
    return [label.get_text() for label in fig.axes[0].get_yticklabels()]
