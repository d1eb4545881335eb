"""Test that the output of `nvidia-smi topo -m` is parsed and described, and that the listed settings exist."""

import io

import pytest

from labs_helpers.tensor_parallel import topology
from labs_helpers.tensor_parallel.placement_settings import SETTINGS, settings
from labs_helpers.tensor_parallel.topology import EXAMPLE, advice, describe, nearest_groups, parse

# Examples of the format: two GPUs joined by NVLink, as a terminal shows them, underlined and aligned with spaces.
TWO = """\
\x1b[4m        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\x1b[0m
GPU0     X      NV18    0-89    0               N/A
GPU1    NV18     X      0-89    0               N/A

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks
"""
# Four GPUs without NVLink, two on each processor, and two ports of a network card.
PCIE = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNODE\tSYS\tSYS\tSYS\tSYS\t0-95\t0\t\tN/A
GPU1\tNODE\t X \tSYS\tSYS\tSYS\tSYS\t0-95\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tPIX\tNODE\tNODE\t96-191\t1\t\tN/A
GPU3\tSYS\tSYS\tPIX\t X \tNODE\tNODE\t96-191\t1\t\tN/A
NIC0\tSYS\tSYS\tNODE\tNODE\t X \tPIX\t\t\t\t
NIC1\tSYS\tSYS\tNODE\tNODE\tPIX\t X \t\t\t\t

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
ONE = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-19\t0\t\tN/A\n"
# Eight GPUs in a cube of NVLinks, in which not every two are neighbors; one card with its driver's name.
CUBE = """\
        GPU0    GPU1    GPU2    GPU3    mlx5_0  CPU Affinity
GPU0     X      NV1     NV2     SYS     NODE    0-11,24-35
GPU1    NV1      X      SYS     NV2     NODE    0-11,24-35
GPU2    NV2     SYS      X      NV1     SYS     12-23,36-47
GPU3    SYS     NV2     NV1      X      SYS     12-23,36-47
mlx5_0  NODE    NODE    SYS     SYS      X
"""


def test_each_pair_is_read_once():
    assert parse(TWO) == {("GPU0", "GPU1"): "NV18"}
    four = parse(EXAMPLE)
    assert len(four) == 15 and four["GPU2", "GPU3"] == "NV18" and four["GPU3", "NIC1"] == "NODE"
    assert parse(PCIE)["GPU2", "GPU3"] == "PIX" and parse(CUBE)["GPU0", "mlx5_0"] == "NODE"
    assert parse(ONE) == {}


@pytest.mark.parametrize("text, groups", [
    (TWO, ("NV", [["GPU0", "GPU1"]])),
    (EXAMPLE, ("NV", [["GPU0", "GPU1", "GPU2", "GPU3"]])),
    (PCIE, ("PIX", [["GPU0"], ["GPU1"], ["GPU2", "GPU3"]])),
    (CUBE, ("NV", [["GPU0", "GPU1"], ["GPU2", "GPU3"]])),
    (ONE, ("", [])),
])  # fmt: skip
def test_groups_have_the_nearest_link_between_every_two(text, groups):
    assert nearest_groups(parse(text)) == groups


def test_ten_gpus_are_in_the_order_of_their_numbers():
    names = [f"GPU{i}" for i in range(11)]
    lines = ["\t".join([f"GPU{i}", *("X" if i == j else "NV4" for j in range(11))]) for i in range(11)]
    table = "\n".join(["\t" + "\t".join(names) + "\tCPU Affinity", *lines])
    assert nearest_groups(parse(table)) == ("NV", [names])


def test_it_is_said_in_words():
    said = describe(EXAMPLE)
    assert "NV18  NVLink" in said and "GPU0–GPU1, GPU0–GPU2" in said and "group of up to 4" in said
    assert said.index("NV18") < said.index("PIX ") < said.index("NODE ") < said.index("SYS ")
    assert "no NVLink" in describe(PCIE) and "no NVLink" not in said
    assert "fewer than two GPUs" in advice(parse(ONE))


@pytest.mark.parametrize("text, said", [
    ("nvidia-smi: command not found", "this text has no table"),
    (TWO.replace("GPU1    NV18     X ", "GPU1    NV18       "), "the line of GPU1 has"),
    (TWO.replace("NV18     X      0-89", "FAR      X      0-89"), "the line of GPU1 has"),
])  # fmt: skip
def test_what_cannot_be_read_is_an_error(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_the_command_reads_a_table_or_shows_an_example(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(PCIE))
    topology.main(["-"])
    said = capsys.readouterr().out
    assert (
        "The nearest GPUs (PIX) are GPU2, GPU3." in said
        and "NCCL_P2P_LEVEL=NVL" in said
        and "--map-by ppr:4:node" in said
    )
    monkeypatch.setattr(topology, "read", lambda: None)
    topology.main([])
    assert "This machine has no GPUs. Here is an example" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("nothing"))
    with pytest.raises(SystemExit):
        topology.main(["-"])
    assert "this text has no table" in capsys.readouterr().err


def test_every_setting_has_a_row():
    table = settings()
    assert len(table) == sum(map(len, SETTINGS.values())) and table["setting"].is_unique
