"""Test that a checkpoint is complete or absent, wherever its writer is killed, and that a changed file is named."""

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from labs_helpers.training import checkpoint_file
from labs_helpers.training.checkpoint_file import Damaged, read, write
from labs_helpers.training.checkpoints import Checkpoints
from labs_helpers.training.settings import Refused

ARRAYS = {
    "not contiguous": np.arange(12.0).reshape(3, 4).T,
    "of another dtype": np.ones(5, np.float32),
    "a scalar": np.array(2.5),
}
ABOUT = {"run": {"dtype": "float64"}, "losses": [0.1, 1 / 3]}


class Killed(BaseException):
    """Stands for SIGKILL, after which nothing happens any more."""


class Life:
    """What is left to a process: each byte written and each of the other calls that change files takes one of it."""

    def __init__(self, left):
        self.left, self.calls = left, []

    def spend(self, wanted):
        given = min(wanted, self.left)
        self.left -= given
        return given

    def call(self, function, *args, **kwargs):
        if not self.spend(1):
            raise Killed
        self.calls.append(function.__name__)
        return function(*args, **kwargs)

    def open(self, *args, **kwargs):
        return File(self.call(open, *args, **kwargs), self)


class File:
    """An open one."""

    def __init__(self, file, life):
        self.file, self.life, self.fileno = file, life, file.fileno

    def write(self, data):
        allowed = self.life.spend(len(data))
        self.file.write(data[:allowed])
        if allowed < len(data):
            raise Killed
        return allowed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


@contextmanager
def living(life):
    """checkpoint_file and the removal of files within this life."""
    unlink = Path.unlink
    mortal = SimpleNamespace(
        **{name: getattr(os, name) for name in ("open", "close", "O_RDONLY")},
        fsync=lambda descriptor: life.call(os.fsync, descriptor),
        replace=lambda old, new: life.call(os.replace, old, new),
    )
    with (
        mock.patch.object(checkpoint_file, "os", mortal),
        mock.patch.object(checkpoint_file, "open", life.open, create=True),
        mock.patch.object(Path, "unlink", lambda path, **given: life.call(unlink, path, **given)),
    ):
        yield


def save(folder, step):
    """A checkpoint that says of which step it is, in each array."""
    Checkpoints(folder).save(step, ABOUT, {name: array + step for name, array in ARRAYS.items()})


def assert_whole(checkpoint):
    step = checkpoint.about["step"]
    assert checkpoint.about == {"step": step, **ABOUT}
    assert list(checkpoint.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        found = checkpoint.arrays[name]
        assert found.dtype == array.dtype and found.shape == array.shape and np.array_equal(found, array + step)


def needed():
    """What a third save takes, the removal of the first checkpoint included."""
    with TemporaryDirectory() as folder:
        save(Path(folder), 1)
        save(Path(folder), 2)
        life = Life(10**9)
        with living(life):
            save(Path(folder), 3)
        return 10**9 - life.left, life.calls


NEEDED, CALLS = needed()


def test_bytes_are_on_the_disk_before_they_have_their_name():
    assert CALLS == ["open", "fsync", "replace", "fsync", "unlink"] and NEEDED > 400


@hypothesis_settings(max_examples=40, deadline=None)
@given(left=st.integers(0, NEEDED - 1))
@example(0)  # nothing
@example(1)  # an empty file
@example(NEEDED - 5)  # all but the last byte
@example(NEEDED - 4)  # all bytes
@example(NEEDED - 3)  # on the disk
@example(NEEDED - 2)  # with its name
@example(NEEDED - 1)  # the first one not yet removed
def test_killed_at_any_byte_there_is_a_whole_checkpoint(left):
    with TemporaryDirectory() as name:
        folder = Path(name)
        save(folder, 1)
        save(folder, 2)
        with pytest.raises(Killed), living(Life(left)):
            save(folder, 3)
        files = Checkpoints(folder).by_step()
        for file in files.values():
            assert_whole(read(file))
        assert {1, 2} <= files.keys() or {2, 3} <= files.keys()
        found, damaged = Checkpoints(folder).latest()
        assert found.about["step"] == (3 if left >= NEEDED - 2 else 2) and not damaged
        assert_whole(found)
        save(folder, found.about["step"] + 1)
        assert list(Checkpoints(folder).by_step()) == [found.about["step"], found.about["step"] + 1]
        assert len(list(folder.iterdir())) == 2  # nothing unfinished


def test_killed_in_the_first_save_there_is_none(tmp_path):
    with pytest.raises(Killed), living(Life(NEEDED // 2)):
        save(tmp_path, 1)
    assert Checkpoints(tmp_path).latest() == (None, {})
    Checkpoints(tmp_path).check_new()  # what is unfinished is in nobody's way


def test_every_cut_and_every_changed_byte_is_seen(tmp_path):
    path = tmp_path / "step-00000001.checkpoint"
    write(path, {"step": 1, **ABOUT}, ARRAYS)
    content = path.read_bytes()
    changed = [content[:size] for size in range(len(content))]
    changed += [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))]
    for other in (*changed, content + b"\0"):
        path.write_bytes(other)
        with pytest.raises(Damaged, match=path.name):
            read(path)
    path.write_bytes(content)
    assert read(path).about["losses"] == ABOUT["losses"]


def test_another_file_is_no_checkpoint(tmp_path):
    path = tmp_path / "step-00000001.checkpoint"
    path.write_bytes(b"PK" + bytes(100))
    with pytest.raises(Damaged, match="is not a checkpoint"):
        read(path)


def test_arrays_can_be_worked_with_where_they_lie(tmp_path):
    for length in range(20):
        write(tmp_path / "file", {"text": "x" * length}, {"a": np.ones(3), "b": np.ones(2)})
        arrays = read(tmp_path / "file").arrays
        assert all(array.flags.aligned and not array.flags.writeable for array in arrays.values())


def test_the_one_before_a_damaged_one_counts_and_the_others_are_set_aside(tmp_path):
    for step in (5, 10):
        save(tmp_path, step)
    damaged = tmp_path / "step-00000010.checkpoint"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    checkpoints = Checkpoints(tmp_path)
    found, which = checkpoints.latest()
    assert found.about["step"] == 5 and list(which) == [damaged] and str(damaged) in which[damaged]
    checkpoints.set_aside(which)
    save(tmp_path, 8)
    assert list(checkpoints.by_step()) == [5, 8] and (tmp_path / f"{damaged.name}.damaged").exists()


def test_all_damaged_is_refused_with_their_names(tmp_path):
    save(tmp_path, 5)
    file = tmp_path / "step-00000005.checkpoint"
    file.write_bytes(b"")
    with pytest.raises(Refused, match=f"{file.name} is empty.*another folder"):
        Checkpoints(tmp_path).latest()


def test_a_disk_that_is_full_leaves_the_one_before(tmp_path):
    save(tmp_path, 5)
    with mock.patch.object(checkpoint_file.os, "fsync", side_effect=OSError(28, "No space left on device")):
        with pytest.raises(OSError) as caught:
            save(tmp_path, 10)
    told = "the checkpoint of step 10 could not be written (No space left on device); the one of step 5 is intact: "
    assert caught.value.strerror == told + "resume there with --resume"
    assert caught.value.filename == str(tmp_path / "step-00000010.checkpoint")
    assert Checkpoints(tmp_path).latest()[0].about["step"] == 5
    assert [file.name for file in tmp_path.iterdir()] == ["step-00000005.checkpoint"]


def test_a_disk_that_is_full_from_the_beginning(tmp_path):
    with mock.patch.object(checkpoint_file.os, "fsync", side_effect=OSError(28, "No space left on device")):
        with pytest.raises(OSError, match="there is no earlier one"):
            save(tmp_path, 10)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room cannot be asked for")
def test_room_for_all_checkpoints_is_tried_before(tmp_path):
    Checkpoints(tmp_path).check_writable(1000)
    for there, wanted in ((0, 3), (1, 2), (2, 1), (3, 1)):
        if there:
            save(tmp_path / "saved", there)
        with pytest.raises(Refused, match=f"no room for {wanted} checkpoints of 1e.12 MB in .*saved: "):
            Checkpoints(tmp_path / "saved").check_writable(10**18)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["saved"]


def test_a_folder_with_the_name_of_a_checkpoint_is_refused_before(tmp_path):
    (tmp_path / "step-00000005.checkpoint").mkdir()
    with pytest.raises(Refused, match="step-00000005.checkpoint is a folder, but has the name of a checkpoint"):
        Checkpoints(tmp_path).check_writable()


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot create the folder .* for checkpoints"):
        Checkpoints(tmp_path / "file" / "inside").check_writable()
    Checkpoints(tmp_path / "new" / "inside").check_writable()
