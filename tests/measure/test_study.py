"""What the commands that measure share: --out, and records kept with where they were measured."""

import sys
from pathlib import Path

import pytest

from labs_helpers.measure import results
from labs_helpers.measure.study import keep, make_parser


def test_a_parser_describes_the_command_and_knows_where_records_go(capsys):
    parser = make_parser("Time it.\n\n    python -m it\n", "gemm")
    assert parser.parse_args([]).out is None and parser.parse_args(["--out", "a.jsonl"]).out == Path("a.jsonl")
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    said = capsys.readouterr().out
    assert "Time it." in said and "python -m it" not in said and "results/gemm.MACHINE.jsonl" in said


def test_records_are_kept_with_where_they_were_measured_once(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    keep("gemm", [{"n": 1}, {"n": 2}], out, show=lambda records: f"{len(records)} rows")
    assert capsys.readouterr().out == f"\n2 rows\n\n2 records appended to {out}\n"
    frame = results.load(out)
    assert list(frame["n"]) == [1, 2] and frame["on.torch"].notna().all() and frame["on.time"].notna().all()
    assert out.read_text().count('"torch"') == 1


def test_what_a_measurement_knows_better_is_kept_as_it_says(tmp_path):
    out = tmp_path / "r.jsonl"
    records = [{"n": 1}, {"n": 2, "on": {"mpi": "MPICH"}}]
    keep("collectives", records, out, on={"machine": "2-core CPU", "mpi": "Open MPI"})
    frame = results.load(out)
    assert list(frame["on.machine"]) == ["2-core CPU"] * 2 and list(frame["on.mpi"]) == ["Open MPI", "MPICH"]
    assert records == [{"n": 1}, {"n": 2, "on": {"mpi": "MPICH"}}]


def test_without_a_file_they_go_to_the_results_of_the_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    keep("gemm-tuning", [{"n": 1}], machine="compiled")
    assert len(results.load(tmp_path / "gemm-tuning.compiled.jsonl")) == 1
    keep("gemm-tuning", [{"n": 1}])
    assert len(results.load(results.path_for("gemm-tuning"))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_file_that_cannot_be_written_to_is_refused_before_anything_is_measured(capsys):
    with pytest.raises(SystemExit):
        make_parser("Time it.", "gemm").parse_args(["--out", "/proc/self/r.jsonl"])
    assert "--out: /proc/self/r.jsonl cannot be written to: " in capsys.readouterr().err


def test_a_file_that_is_tried_does_not_appear_and_one_that_is_there_stays(tmp_path):
    (tmp_path / "old.jsonl").write_text("{}\n")
    for name in ("new.jsonl", "old.jsonl"):
        make_parser("Time it.", "gemm").parse_args(["--out", str(tmp_path / name)])
    assert [file.name for file in tmp_path.iterdir()] == ["old.jsonl"]
    assert (tmp_path / "old.jsonl").read_text() == "{}\n"
