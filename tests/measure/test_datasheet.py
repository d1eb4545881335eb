import pytest

from labs_helpers.gemm import Config
from labs_helpers.gemm.lab03.exercises import prune, resources
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET, lookup


def test_tensor_core_rates_are_the_dense_ones():
    # The sparse figures printed beside them: A100 624, L4 242, H100 and H200 1979, MI300X 2614.9 TFLOP/s.
    assert DATASHEET["A100"].fp16_flops < 320e12
    assert DATASHEET["L4"].fp16_flops < 122e12
    assert DATASHEET["H100"].fp16_flops < 1000e12
    assert DATASHEET["MI300X"].fp16_flops < 1310e12


@pytest.mark.parametrize(
    "gpu, flop_per_clock_and_sm, boost_hz",
    [
        ("T4", 1024, 1.59e9),
        ("A100", 2048, 1.41e9),
        ("L4", 1024, 2.04e9),
        ("H100", 4096, 1.83e9),
        ("H200", 4096, 1.83e9),
        ("MI300X", 2048, 2.1e9),
    ],
)
def test_tensor_core_rate_is_units_times_clock(gpu, flop_per_clock_and_sm, boost_hz):
    entry = DATASHEET[gpu]
    assert entry.fp16_flops == pytest.approx(entry.multiprocessors * flop_per_clock_and_sm * boost_hz, rel=0.01)


@pytest.mark.parametrize(
    "gpu, pins_times_rate",
    [
        ("T4", 256 * 10e9),
        ("A100", 5120 * 3.186e9),
        ("L4", 192 * 12.5e9),
        ("H100", 5120 * 5.23e9),
        ("H200", 6144 * 6.25e9),
        ("MI300X", 8192 * 5.2e9),
    ],
)
def test_bandwidth_is_bus_width_times_pin_rate(gpu, pins_times_rate):
    assert DATASHEET[gpu].bandwidth == pytest.approx(pins_times_rate / 8, rel=0.01)


def test_h200_is_an_h100_with_faster_memory():
    h100, h200 = DATASHEET["H100"], DATASHEET["H200"]
    same = set(vars(h100)) - {"bandwidth", "memory_bytes", "l2_bytes", "source", "torch_name"}
    assert all(getattr(h100, name) == getattr(h200, name) for name in same)
    assert h200.bandwidth == 4.8e12 and h100.bandwidth == 3.35e12
    assert h200.memory_bytes == 141e9 and h100.memory_bytes == 80e9
    assert h200.l2_bytes > h100.l2_bytes  # 60 MB by the driver of one, 50 by the other's whitepaper


@pytest.mark.parametrize(
    "gpu, links_times_rate",
    [("A100", 12 * 25e9), ("H100", 18 * 25e9), ("H200", 18 * 25e9), ("MI300X", 7 * 64e9)],
)
def test_link_rates_are_those_of_one_direction(gpu, links_times_rate):
    """The sheets add up both: 600, 900, 900 and 896 GB/s."""
    assert DATASHEET[gpu].link_bandwidth == links_times_rate


def test_on_chip_sizes():
    assert DATASHEET["H100"].shared_bytes_per_block == 232_448
    assert DATASHEET["A100"].shared_bytes_per_block == 166_912
    assert DATASHEET["MI300X"].l2_bytes == 32 * 2**20 and DATASHEET["MI300X"].l3_bytes == 256 * 2**20
    for entry in DATASHEET.values():
        assert entry.shared_bytes_per_block <= entry.shared_bytes_per_sm
        assert entry.warp_size == (64 if entry.architecture.startswith("gfx") else 32)
        assert entry.source and 100 < entry.ridge < 450


@pytest.mark.parametrize(
    "name, key",
    [
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("H100", "H100"),
    ],
)
def test_lookup_by_the_name_torch_gives(name, key):
    assert lookup(name) is DATASHEET[key]


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 NVL",
        "NVIDIA H200 NVL",
        "NVIDIA GH200 480GB",
        "NVIDIA T400",
        "NVIDIA L40",
        "NVIDIA L40S",
        "Intel(R) Xeon(R) Processor",
        "",
    ],
)
def test_a_board_with_other_rates_is_not_taken_for_one_listed(name):
    assert lookup(name) is None


@pytest.mark.parametrize("gpu", DATASHEET)
def test_lab_03_counts_buffers_on_every_chip_of_the_table(gpu):
    chip, buffer = DATASHEET[gpu], (64 + 128) * 32 * 2
    stages = 1 if chip.capability < 80 else 3 if chip.capability < 90 else 4
    assert resources(Config(64, 128, 32, num_stages=4), chip)[0] == stages * buffer
    assert prune(grid(), 4096, 4096, 4096, chip)


def test_every_gpu_has_its_row_in_the_tables_above():
    for test in (test_tensor_core_rate_is_units_times_clock, test_bandwidth_is_bus_width_times_pin_rate):
        (table,) = (mark.args[1] for mark in test.pytestmark if mark.name == "parametrize")
        assert [row[0] for row in table] == list(DATASHEET)
