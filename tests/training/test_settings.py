"""Test the programs' refusals, their messages, and how options become settings. Needs no ranks."""

from pathlib import Path

import pytest

from labs_helpers.training.cores import prepare_mpi
from labs_helpers.training.options import parse
from labs_helpers.training.pipelining import usual_micro_batches
from labs_helpers.training.progress import Progress, duration
from labs_helpers.training.run import check_files
from labs_helpers.training.settings import Refused, Settings, make_config

REFUSED = {
    "--dp 3": r"dp × tp is 3 × 1 = 3, but there are 8 ranks. Possible .*: 8 × 1, 4 × 2, 2 × 4, 1 × 8$",
    "--dp 2 --tp 4 --heads 2": "tp 4 does not divide heads 2.*Possible .*: 8 × 1, 4 × 2$",
    "--tp 8 --width 72 --heads 4": "tp 8 does not divide heads 4",
    "--dp 0 --tp 8": "dp 0 and tp 8 have to be 1 or more",
    "--dp 8 --width 30": "width is 30, no multiple of the 8 heads",
    "--dp 8 --width 24": "head_dim is 24 / 8 = 3",
    "--dp 8 --layers 0": "layers is 0",
    "--dp 8 --batch 30": "batch is 30, which dp 8 does not divide: 6 left over; 24 or 32 would do$",
    "--dp 8 --length 65": "length is 65, but a digit has 64 pixels",
    "--tp 8 --data text --length 12 --sequence-parallel": "length is 12, which tp 8 does not divide",
    "--tp 8 --scheme naive --sequence-parallel": "the naive scheme has no sequence parallelism",
    "--pp 3": r"dp × pp × tp is 1 × 3 × 1 = 3, but there are 8 ranks$",
    "--pp 2 --dp 2": r"dp × pp × tp is 2 × 2 × 1 = 4, but .*Possible .*: 4 × 2 × 1, 2 × 2 × 2, 1 × 2 × 4$",
    "--pp 0 --dp 8": "dp 8, pp 0 and tp 1 have to be 1 or more$",
    "--pp 8": "pp 8 makes 8 stages, but 2 layers, the embedding and the output make only 4",
    "--pp 4 --dp 2 --schedule interleaved --chunks 2": "pp 4 × 2 chunks makes 8 stages, but 2 layers",
    "--pp 2 --dp 4 --schedule interleaved": "the interleaved schedule needs 2 or more chunks per rank, but chunks is 1",
    "--pp 2 --dp 4 --chunks 2": "chunks is 2, but only the interleaved schedule has more than 1 per rank, not 1F1B",
    "--pp 2 --dp 4 --chunks 0": "chunks is 0, but has to be 1 or more",
    "--pp 2 --dp 4 --micro-batches 0": "micro_batches is 0, but has to be 1 or more",
    "--pp 2 --dp 4 --micro-batches 5": "batch is 32, which dp 4 × 5 micro-batches = 20 does not divide: 12 left over; "
    "20 or 40 would do$",
    "--pp 2 --dp 4 --micro-batches 16": "dp 4 × 16 micro-batches = 64 does not divide: 32 left over; 64 would do$",
    "--pp 2 --dp 4 --batch 36 --micro-batches 9 --schedule interleaved --chunks 2": "9 micro-batches do not form "
    "groups of 2 ranks; 8 or 10 would$",
    "--dp 8 --zero 2": "argument --zero: invalid choice: 2",
    "--dp 8 --schedule zigzag": "argument --schedule: invalid choice: 'zigzag'",
    "--dp 8 --steps 0": "steps is 0, but has to be 1 or more",
    "--dp 8 --batch -8": "batch is -8",
    "--dp 8 --data text --length 0": "length is 0",
    "--dp 8 --every 0 --checkpoint x": "every is 0",
    "--dp 8 --every 5": "every needs a folder",
    "--dp 8 --resume": "resume needs a folder",
    "--dp 8 --report 0": "report is 0",
    "--dp 8 --threads 0": "threads is 0",
    "--dp 8 --lr nan": "lr is nan, but has to be positive",
    "--dp 8 --bucket-mb inf": "bucket_mb is inf",
    "--dp 8 --bucket-mb 0": "bucket_mb is 0",
    "--dp 8 --seed -1": "seed is -1",
    "--dp 8 --dtype float16": "argument --dtype: invalid choice: 'float16'",
    "--dp 8 --steps many": "argument --steps: invalid int value: 'many'",
    "--dp 8 --check x": "unrecognized arguments: --check x",  # no abbreviations
    "--dp 8 --way": "argument --way: expected one argument",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_refused(line, capsys):
    with pytest.raises(Refused, match=REFUSED[line]):
        parse(line.split(), "", 8)
    assert capsys.readouterr() == ("", "")


def test_settings_of_a_line():
    line = "--dp 2 --tp 4 --data text --length 32 --size tiny --heads 8 --width 64 --way own --checkpoint c --steps 50"
    found = parse(line.split(), "", 8)
    config = make_config("text", 32, "tiny", 64, None, 8)
    assert found == Settings(2, 4, "text", config, steps=50, length=32, way="own", checkpoint=Path("c"))
    assert (config.vocabulary, config.context, config.hidden, config.kv_heads) == (256, 32, 192, 8)
    assert found.checkpoint_every == 5 and found.report_every == 2


def test_pipeline_settings_of_a_line():
    line = "--dp 2 --pp 2 --tp 2 --schedule interleaved --chunks 2 --zero 1 --checkpoint-activations"
    given = {"schedule": "interleaved", "chunks": 2, "zero": 1, "checkpoint_activations": True}
    found = parse(line.split(), "", 8)
    assert found == Settings(2, 2, pp=2, **given) and list(found.axes.items()) == [("dp", 2), ("pp", 2), ("tp", 2)]
    assert (found.micro_batches_per_step, found.micro_batch) == (4, 4)
    assert found.identity() == Settings().identity()


@pytest.mark.parametrize("sequences, ranks, chunks, expected", [
    (32, 1, 1, 1), (32, 4, 1, 8), (12, 4, 1, 6), (6, 4, 1, 6), (30, 4, 1, 10), (7, 2, 1, 7), (3, 4, 1, 3),
    (12, 4, 2, 12), (24, 3, 2, 6), (7, 2, 2, 4), (1, 8, 1, 1),
])  # fmt: skip
def test_the_usual_micro_batches_divide_the_sequences(sequences, ranks, chunks, expected):
    """The last but one has no multiple of the ranks that divides; the refusal then names sizes that do."""
    assert usual_micro_batches(sequences, ranks, chunks) == expected


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_the_usual_model_can_be_shared_by_all_ranks(tp):
    for data in ("digits", "text"):
        assert parse(["--dp", str(8 // tp), "--tp", str(tp), "--data", data], "", 8) == Settings(
            8 // tp, tp, data, make_config(data)
        )


def test_what_is_free_to_change_between_runs():
    first = Settings()
    same = Settings(2, 4, scheme="naive", way="own", bucket_mb=3.0, every=7, report=2, checkpoint=Path("c"))
    assert same.identity() == first.identity()
    others = [Settings(config=make_config("digits", width=128)), Settings(dtype="float64"), Settings(steps=7)]
    assert all(other.identity() != first.identity() for other in others)


def test_files_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path, tmp_path / "file" / "records.jsonl"):
        with pytest.raises(Refused, match="cannot write records to"):
            check_files(Settings(out=out), None)
    check_files(Settings(out=tmp_path / "new" / "records.jsonl"), None)


def test_help_says_what_the_options_are(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(["--help"], "Train.", 8)
    assert not ended.value.code and "--sequence-parallel" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"])
def test_many_ranks_yield_their_cores_while_they_wait(monkeypatch, name):
    variable = "OMPI_MCA_mpi_yield_when_idle"
    for other in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", variable):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setattr("labs_helpers.training.cores.own_cores", lambda: set(range(8)))
    environment = {}
    monkeypatch.setattr("labs_helpers.training.cores.os.environ", environment)
    environment[name] = "4"
    prepare_mpi()
    assert variable not in environment
    environment[name] = "5"
    prepare_mpi()
    assert environment[variable] == "1"
    environment[variable] = "0"
    prepare_mpi()
    assert environment[variable] == "0"


def test_gradients_are_added_up_by_another_algorithm_than_the_tree(monkeypatch):
    variable, environment = "OMPI_MCA_coll_libnbc_iallreduce_algorithm", {}
    monkeypatch.setattr("labs_helpers.training.cores.os.environ", environment)
    prepare_mpi()
    assert environment[variable] == "rabenseifner"
    environment[variable] = "ring"
    prepare_mpi()
    assert environment[variable] == "ring"


def test_progress_says_the_time_left(monkeypatch):
    now = iter([100.0, 104.0, 112.0])
    monkeypatch.setattr("labs_helpers.training.progress.time.perf_counter", lambda: next(now))
    progress = Progress(20, done=10)
    assert progress.line(12, [3.0, 2.0]) == "step 12 of 20: loss 2.5000, 2e+03 ms per step, 16 s left"
    assert progress.line(20, [1.0]) == "step 20 of 20: loss 1.0000, 1.2e+03 ms per step"
    assert [duration(s) for s in (0.42, 41, 200, 7300)] == ["0.4 s", "41 s", "3 min", "2 h 02 min"]
