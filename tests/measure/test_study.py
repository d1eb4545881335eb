"""Test the shared parts of commands that measure: --out, and records with their place of measurement."""

import sys
from pathlib import Path

import pytest

from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.study import Study

GEMM, TUNING = Study("gemm"), Study("gemm-tuning")


def test_a_parser_describes_the_command_and_knows_where_records_go(capsys):
    parser = Study("gemm").parser("Time it.\n\n    python -m it\n")
    assert parser.parse_args([]).out is None and parser.parse_args(["--out", "a.jsonl"]).out == Path("a.jsonl")
    assert parser.parse_args(["--record"]).out == results.results_dir()
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    said = capsys.readouterr().out
    assert "Time it." in said and "python -m it" not in said
    assert "build/records/gemm.MACHINE.jsonl" in said and " results/gemm.MACHINE.jsonl" in said


def test_out_takes_a_folder_or_a_file(tmp_path):
    def out(*parts):
        return GEMM.parser("Time it.").parse_args(["--out", str(tmp_path.joinpath(*parts))]).out

    (tmp_path / "file").touch()
    assert out() == tmp_path and out("file") == tmp_path / "file" and out("new.jsonl") == tmp_path / "new.jsonl"
    folder = out("new", "folder")
    assert GEMM.path(folder, "NVIDIA H200") == folder / "gemm.nvidia-h200.jsonl"
    assert GEMM.path(out("file")) == tmp_path / "file"
    assert not (tmp_path / "new").exists()  # before there is something to write
    GEMM.keep([{"n": 1}], folder, machine="NVIDIA H200")
    assert len(results.load(folder / "gemm.nvidia-h200.jsonl")) == 1


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--out", "{}/none/a.jsonl"], "is in a folder that does not exist; name a file"),
        (["--out", "{}/file/a.jsonl"], "is in a folder that does not exist; name a file"),
        (["--out", "{}/file/folder"], "/file is a file"),
        (["--out", "{}", "--record"], "argument --record: not allowed with argument --out"),
        (["--record"], "recorded is not the results/ of a checkout; name a folder with --out"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_refused_in_a_sentence(arguments, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "recorded").mkdir()
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path / "recorded"))
    with pytest.raises(SystemExit):
        GEMM.parser("Time it.").parse_args([argument.format(tmp_path) for argument in arguments])
    assert said in capsys.readouterr().err


def test_every_module_that_writes_records_asks_where_they_go():
    """A module that writes by itself takes the place from a Study, or from --out."""
    for path in [*(results.ROOT / "labs_helpers").rglob("*.py"), *(results.ROOT / "mpi_scripts").glob("*.py")]:
        text = path.read_text()
        if path.parent.name != "measure" and ("results.append(path" in text or "trace.save(" in text):
            assert "from labs_helpers.measure.study import" in text or "import add_out" in text, path


def test_records_are_kept_with_where_they_were_measured_once(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    GEMM.keep([{"n": 1}, {"n": 2}], out, table=lambda rows: rows)
    assert capsys.readouterr().out == f"\n n\n 1\n 2\n\n2 records appended to {out}\n"
    frame = results.load(out)
    assert list(frame["n"]) == [1, 2] and frame["on.torch"].notna().all() and frame["on.time"].notna().all()
    assert out.read_text().count('"torch"') == 1


def test_what_a_measurement_knows_better_is_kept_as_it_says(tmp_path):
    out = tmp_path / "r.jsonl"
    records = [{"n": 1}, {"n": 2, "on": {"mpi": "MPICH"}}]
    Study("collectives").keep(records, out, on={"machine": "2-core CPU", "mpi": "Open MPI"})
    frame = results.load(out)
    assert list(frame["on.machine"]) == ["2-core CPU"] * 2 and list(frame["on.mpi"]) == ["Open MPI", "MPICH"]
    assert records == [{"n": 1}, {"n": 2, "on": {"mpi": "MPICH"}}]


def test_without_a_place_they_go_to_the_reader_s_records(tmp_path, monkeypatch, capsys):
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    shipped.mkdir()
    monkeypatch.setenv("LABS_RECORDS", str(own))
    monkeypatch.setenv("LABS_RESULTS", str(shipped))
    TUNING.keep([{"n": 1}], TUNING.path(machine="compiled"))
    assert len(results.load(own / "gemm-tuning.compiled.jsonl")) == 1
    TUNING.keep([{"n": 1}])
    TUNING.keep([{"n": 2}])
    assert list(results.load(results.path_for("gemm-tuning", folder=own))["n"]) == [1, 2]
    assert not list(shipped.iterdir())
    said = capsys.readouterr().out
    where = f"The figures of labs 02 and 03 that draw this study show them too, as '{this_machine().label}, your run'."
    assert said.count(where) == 2  # once per file
    TUNING.keep([{"n": 1}], TUNING.parser("Time it.").parse_args(["--record"]).out)
    assert [path.suffix for path in sorted(shipped.iterdir())] == [".jsonl", ".lock"]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_file_that_cannot_be_written_to_is_refused_before_anything_is_measured(capsys):
    with pytest.raises(SystemExit):
        GEMM.parser("Time it.").parse_args(["--out", "/proc/self/r.jsonl"])
    assert "--out: /proc/self/r.jsonl cannot be written to (" in capsys.readouterr().err


def test_a_file_that_is_tried_does_not_appear_and_one_that_is_there_stays(tmp_path):
    (tmp_path / "old.jsonl").write_text("{}\n")
    for name in ("new.jsonl", "old.jsonl"):
        GEMM.parser("Time it.").parse_args(["--out", str(tmp_path / name)])
    assert [file.name for file in tmp_path.iterdir()] == ["old.jsonl"]
    assert (tmp_path / "old.jsonl").read_text() == "{}\n"
