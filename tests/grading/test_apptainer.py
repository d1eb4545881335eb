"""Test Apptainer's command line, and the message if it is no jail; does not need Apptainer."""

import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.grading.jails import apptainer
from labs_helpers.grading.jails.apptainer import DEFINITION, in_apptainer, why_not
from labs_helpers.grading.jails.bubblewrap import COURSE, Limits


def test_the_whole_command():
    words = in_apptainer(
        Path("/images/course.sif"), [sys.executable, "-c", "pass"], [Path("/course/labs_helpers")],
        Limits(seconds=10, memory=2**31, processes=40, file=2**20), [Path("/course/labs_helpers/answers")],
        Path("/empty"),
    )  # fmt: skip
    image = words.index("/images/course.sif")
    assert words[:image] == [
        "apptainer", "--silent", "exec", "--containall", "--cleanenv", "--no-home", "--no-privs",
        "--no-mount", "hostfs,bind-paths", "--net", "--network", "none", "--hostname", "jail", "--pwd", "/tmp",
        "--mount", "type=bind,src=/course/labs_helpers,dst=/course/labs_helpers,ro",
        "--mount", "type=bind,src=/empty,dst=/course/labs_helpers/answers,ro",
    ]  # fmt: skip
    inside = words[image + 1 :]
    limits = inside.index("prlimit")
    assert inside[:2] == ["/usr/bin/env", "-i"]
    assert {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", f"PYTHONPATH={COURSE}"} <= set(inside[2:limits])
    assert {"--as=2147483648", "--fsize=1048576", "--core=0", "--cpu=50"} <= set(inside[limits:])
    assert inside[-4:] == ["--", "python3", "-c", "pass"]


def test_a_path_with_a_comma_and_a_colon_is_one_field():
    words = in_apptainer(Path("/i.sif"), ["true"], [Path("/a,b:c")])
    assert words[words.index("--mount") + 1] == 'type=bind,"src=/a,b:c","dst=/a,b:c",ro'


def test_a_machine_without_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(apptainer.shutil, "which", lambda name: None)
    assert "apptainer is not installed" in why_not.__wrapped__(tmp_path)
    monkeypatch.setattr(apptainer.shutil, "which", lambda name: name)
    assert "there is no image" in why_not.__wrapped__(tmp_path / "course.sif")


@pytest.fixture
def image(monkeypatch, tmp_path):
    """A file, and a program `apptainer` that runs the command behind it as it is."""
    image = tmp_path / "course.sif"
    image.touch()
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nset -e\nuntil [ "$1" = {image} ]; do shift; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return image


def test_where_it_keeps_nothing_in_nothing_is_graded(image):
    told = why_not.__wrapped__(image)
    assert "can signal processes that are not its own" in told and "can read" in told


def test_where_it_fails_its_words_are_said(image):
    Path(image.parent, "bin", "apptainer").write_text("#!/bin/sh\necho FATAL: no user namespaces >&2\nexit 255\n")
    assert why_not.__wrapped__(image) == "Apptainer does not work here: FATAL: no user namespaces"


def test_settings_that_would_add_binds_are_not_passed_on(monkeypatch):
    monkeypatch.setenv("APPTAINER_BIND", "/home")
    monkeypatch.setenv("SINGULARITYENV_X", "1")
    monkeypatch.setenv("LABS_X", "1")
    assert {"APPTAINER_BIND", "SINGULARITYENV_X", "LABS_X"} & set(apptainer._own_settings()) == {"LABS_X"}


def test_the_definition_is_printed_and_names_what_there_is():
    printed = subprocess.run([sys.executable, "-m", apptainer.__name__], capture_output=True, text=True, timeout=100)
    assert printed.stdout == DEFINITION
    files = DEFINITION.partition("%files\n")[2].partition("\n\n")[0]
    for line in files.splitlines():
        source, place = line.split()
        assert (COURSE / source).exists() and place == f"/course/{source}"
