"""Test the course's records and the reader's own: each has its own name, and they are never joined."""

import pytest

from labs_helpers.measure import records, results

COMMAND = "python -m it"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """(shipped, own): the two folders."""
    for name, variable in (("shipped", "LABS_RESULTS"), ("own", "LABS_RECORDS")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path / "shipped", tmp_path / "own"


def write(folder, machine, n, **more):
    results.append(results.path_for("gemm", machine, folder), {"n": n, "on": {"machine": machine}} | more)


def test_a_machine_of_one_name_is_two(folders):
    shipped, own = folders
    write(shipped, "NVIDIA H200", 1)
    write(own, "NVIDIA H200", 2)
    write(own, "4-core CPU", 3)
    assert list(records.recorded("gemm")) == ["nvidia-h200"]
    assert list(records.yours("gemm")) == ["4-core-cpu-your-run", "nvidia-h200-your-run"]
    for name, n, machine in [
        ("nvidia-h200", 1, "NVIDIA H200"),
        ("NVIDIA H200", 1, "NVIDIA H200"),
        ("nvidia-h200-your-run", 2, "NVIDIA H200, your run"),
        ("NVIDIA H200, your run", 2, "NVIDIA H200, your run"),
        ("4-core-cpu", 3, "4-core CPU, your run"),
        ("4-core-cpu-your-run", 3, "4-core CPU, your run"),
    ]:
        rows = records.of_machine("gemm", name, COMMAND)
        assert list(rows["n"]) == [n] and list(rows["on.machine"]) == [machine], name
    assert records.label("NVIDIA H200") == "NVIDIA H200 (recorded)"
    assert records.label("NVIDIA H200, your run") == "NVIDIA H200, your run"


def test_what_is_nowhere_names_the_command(folders):
    with pytest.raises(FileNotFoundError, match=COMMAND):
        records.of_machine("gemm", "nvidia-h200", COMMAND)
    assert records.yours("gemm") == {}


def test_without_a_folder_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path / "none"))
    assert records.yours("gemm") == {}


def test_what_is_broken_is_left_out_with_one_sentence(folders, capsys):
    _, own = folders
    write(own, "NVIDIA H200", 1)
    with open(own / "gemm.nvidia-h200.jsonl", "a") as file:
        file.write('{"n": 2, "on"')
    (own / "gemm.torn.jsonl").write_text('{"n"')
    (own / "gemm.empty.jsonl").touch()
    (own / "gemm.folder.jsonl").mkdir()
    (own / "gemm.number.jsonl").write_text('{"n": 1, "on": {"machine": 5}}\n')
    for _ in range(2):
        assert {name: list(rows["n"]) for name, rows in records.yours("gemm").items()} == {"nvidia-h200-your-run": [1]}
    said = capsys.readouterr().out.splitlines()
    assert sorted(line.split(" ")[0].split("/")[-1].split(".")[1] for line in said) == [
        "folder", "number", "nvidia-h200", "torn",
    ]  # fmt: skip
    assert all("left out of the figures" in line for line in said)


def test_records_without_a_machine_have_their_file_s(folders):
    _, own = folders
    (own / "gemm.some-gpu.jsonl").write_text('{"n": 1}\n{"n": 2, "on": {"machine": "Some GPU"}}\n')
    rows = records.yours("gemm")["some-gpu-your-run"]
    assert list(rows["on.machine"]) == ["some-gpu, your run", "Some GPU, your run"]


def test_the_reader_s_folder_can_be_written_to(monkeypatch, tmp_path):
    monkeypatch.delenv("LABS_RECORDS")
    assert results.own_dir() == results.ROOT / "build/records"
    monkeypatch.setattr(results, "ROOT", tmp_path)  # not a checkout: the package alone is installed
    monkeypatch.chdir(tmp_path)
    assert results.own_dir() == tmp_path / "build/records"
