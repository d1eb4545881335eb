"""Test `make setup` with a Python that only records its calls, and make's messages if it cannot start."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from labs_helpers.launch.process import ProcessFailed, run

ROOT = Path(__file__).parents[2]
OUR_PYTHON = sys.executable

# Stands for python3: makes a .venv whose python notes its arguments in the file pip.log.
FAKE_PYTHON = f"""#!/bin/sh
if [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  printf '#!/bin/sh\\necho "$@" >>pip.log\\nexit $(cat status 2>/dev/null || echo 0)\\n' >"$3/bin/python"
  chmod +x "$3/bin/python"
else
  exec "{OUR_PYTHON}" "$@"
fi
"""


@pytest.fixture
def tree(tmp_path):
    """A folder with a space in its name that holds what set-up reads, and the fake python3 in bin/."""
    tree = tmp_path / "a tree"
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    program(tree, "python3", FAKE_PYTHON)
    return tree


def program(tree, name, text):
    (tree / "bin").mkdir(exist_ok=True)
    (tree / "bin" / name).write_text(text)
    (tree / "bin" / name).chmod(0o755)


def environment(tree):
    # An outer make hands its variables down through MAKEFLAGS; `run` would put this Python's folder first.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return {**env, "PATH": os.pathsep.join([str(tree / "bin"), str(Path(OUR_PYTHON).parent), os.environ["PATH"]])}


def make(tree, *arguments):
    return run(["make", *arguments], timeout=60, cwd=tree, env=environment(tree))


def pip_log(tree):
    log = tree / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def test_help_is_the_default_and_names_every_target(tree):
    shown = make(tree)
    assert shown == make(tree, "help") and not pip_log(tree)
    targets = re.search(r"^\.PHONY: (.*)$", (tree / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert set(targets) >= {"setup", "run", "test", "lab", "clean", "test-newest", "soak", "sync", "refresh", "new-lab"}
    assert all(re.search(rf"^  {target} +\w", shown, re.MULTILINE) for target in targets)


def set_ups(tree):
    """How often the environment was set up."""
    return sum("--editable" in line for line in pip_log(tree))


def test_setup_installs_once_with_the_constraints(tree):
    make(tree, "setup", "PIP_ARGS=--extra-index-url https://example.org/cpu")
    line = pip_log(tree)[0]
    assert line.startswith("-m pip install --extra-index-url https://example.org/cpu ")
    assert "--constraint constraints.txt" in line and "--editable .[test]" in line
    make(tree, "setup")
    assert set_ups(tree) == 1


TRITON_3_2 = "-m pip install --upgrade --target .triton-3.2 --no-deps triton==3.2.0"
REFUSES = FAKE_PYTHON.replace("#!/bin/sh\n", '#!/bin/sh\ncase "$*" in *platform.machine*) exit 1 ;; esac\n')


def gpu(tree, name):
    program(tree, "nvidia-smi", f'#!/bin/sh\necho "GPU 0: {name} (UUID: GPU-0)"\n')


@pytest.mark.parametrize("name, target", [("Tesla T4", "setup"), ("NVIDIA H200", "t4")])
def test_triton_3_2_comes_beside_the_environment_for_a_t4_or_when_asked_for(tree, name, target):
    gpu(tree, name)
    has_wheel = platform.machine() == "x86_64" and sys.version_info < (3, 14)
    assert ("no wheel" in make(tree, target)) != has_wheel
    assert (TRITON_3_2.split() in [line.split() for line in pip_log(tree)]) == has_wheel


@pytest.mark.parametrize("name", ["NVIDIA H200", ""])
def test_set_up_leaves_it_out_elsewhere(tree, name):
    gpu(tree, name)
    make(tree, "setup")
    assert not any("triton==3.2.0" in line for line in pip_log(tree))


def test_setup_goes_on_where_triton_3_2_has_no_wheel(tree):
    program(tree, "python3", REFUSES)
    gpu(tree, "Tesla T4")
    said = make(tree, "setup")
    assert "Triton 3.2.0 has no wheel for this Python or processor" in said and ".venv is ready" in said
    assert len(pip_log(tree)) == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_setup_again_when_the_list_changes(tree, name):
    make(tree, "setup")
    later = (tree / "pyproject.toml").stat().st_mtime + 1000
    os.utime(tree / name, (later, later))
    make(tree, "setup")
    assert set_ups(tree) == 2


def test_setup_again_after_the_tree_was_moved(tree):
    make(tree, "setup")
    moved = tree.rename(tree.with_name("another tree"))
    make(moved, "setup")
    assert set_ups(moved) == 2


def test_a_failed_setup_is_tried_again(tree):
    (tree / "status").write_text("1")
    with pytest.raises(ProcessFailed):
        make(tree, "setup")
    (tree / "status").unlink()
    make(tree, "setup")
    assert set_ups(tree) == 2


CORES = max(2, len(os.sched_getaffinity(0)))
TEST = "-m pytest --dist loadfile -n {} --timeout={} --nbval --nbval-current-env --nbval-cell-timeout={}"


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["run"], "-m labs_helpers.course.run_labs --out build"),
        (["run", "LABS=00 02"], "-m labs_helpers.course.run_labs --out build 00 02"),
        (["test", "PATIENCE=1"], TEST.format(CORES, 400, 60)),
        (["test", "JOBS=3", "PATIENCE=4"], TEST.format(3, 1600, 240)),
        (["lab"], "-m labs_helpers.course.my_labs"),
        (["lab", "RESET=02/3"], "-m labs_helpers.course.my_labs --reset 02/3"),
        (["first-aid"], "-m labs_helpers.course.first_aid"),
        (["serve"], "-m labs_helpers.serving"),
        (["serve", "ARGS=--port 0"], "-m labs_helpers.serving --port 0"),
        (["progress"], "-m labs_helpers.course.all_labs"),
        (["sync"], "-m labs_helpers.authoring.sync"),
        (["sync", "CHECK=1"], "-m labs_helpers.authoring.sync --check"),
        (["refresh", "LABS=02 04"], "-m labs_helpers.authoring.refresh 02 04"),
        (["handout", "LABS=02 04"], "-m labs_helpers.grading.handout 02 04"),
        (["handout", "OUT=a folder"], "-m labs_helpers.grading.handout --out a folder"),
        (
            ["new-lab", "NUMBER=07", "TOPIC=tensor_parallel", 'TITLE=A "$$x"'],
            '-m labs_helpers.authoring.new_lab 07 tensor_parallel A "$x"',
        ),
    ],
    ids=" ".join,
)
def test_targets_set_up_first_and_then_run(tree, arguments, expected):
    make(tree, *arguments)
    *installs, command = pip_log(tree)
    assert all(line.startswith("-m pip install") for line in installs) and command.strip() == expected


def test_tests_run_two_at_a_time_on_one_core(tree):
    program(tree, "nproc", "#!/bin/sh\necho 1\n")
    make(tree, "test", "PATIENCE=1")
    assert pip_log(tree)[-1] == TEST.format(2, 400, 60)


@pytest.mark.parametrize("status, ends_well", [("0", True), ("5", True), ("1", False)])
def test_soak_without_tests_is_no_failure(tree, status, ends_well):
    make(tree, "setup")
    (tree / "status").write_text(status)
    if ends_well:
        assert ("No test is marked soak" in make(tree, "soak")) == (status == "5")
    else:
        with pytest.raises(ProcessFailed):
            make(tree, "soak")


def test_clean_removes_what_was_made_and_keeps_my_labs(tree):
    make(tree, "setup")
    (tree / ".venv" / "pyvenv.cfg").touch()
    for folder in ("build", ".triton-3.2", "my_labs", "labs_helpers/__pycache__", "tests"):
        (tree / folder).mkdir(parents=True)
    assert "records" not in make(tree, "clean")
    left = {path.name for path in tree.iterdir()}
    assert "my_labs" in left and not left & {"build", ".venv", ".triton-3.2"}
    assert not (tree / "labs_helpers/__pycache__").exists()


def test_clean_keeps_what_the_reader_measured_and_says_so(tree):
    for folder in ("build/records", "build/figures", "labs_helpers", "tests"):
        (tree / folder).mkdir(parents=True)
    (tree / "build/records/gemm.4-core-cpu.jsonl").write_text("{}\n")
    (tree / "build/index.html").touch()
    assert "Keeping your measurements in build/records." in make(tree, "clean")
    assert [str(path.relative_to(tree)) for path in sorted(tree.glob("build/**/*"))] == [
        "build/records", "build/records/gemm.4-core-cpu.jsonl",
    ]  # fmt: skip


def test_clean_removes_no_folder_that_is_not_an_environment(tree):
    (tree / "precious").mkdir()
    for folder in ("labs_helpers", "tests"):
        (tree / folder).mkdir()
    make(tree, "clean", "VENV=precious")
    assert (tree / "precious").exists()


FAILS = '#!/bin/sh\ncase "$*" in *{word}*) exit 1 ;; --version) echo Python 3.9.2 ;; *) exit 0 ;; esac\n'


@pytest.mark.parametrize(
    "programs, arguments, said",
    [
        ({"uname": "#!/bin/sh\necho Darwin\n"}, [], "macOS.*devcontainer"),
        ({"uname": "#!/bin/sh\necho MINGW64_NT\n"}, [], "Windows.*WSL"),
        ({}, ["PYTHON=no-such-python"], "no-such-python was not found"),
        ({"python3": FAILS.format(word="version_info")}, [], "Python 3.9.2 is too old"),
        ({"python3": FAILS.format(word="ensurepip")}, [], "apt install python3-venv"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_made(tree, programs, arguments, said):
    for name, text in programs.items():
        program(tree, name, text)
    with pytest.raises(ProcessFailed) as caught:
        make(tree, "setup", *arguments)
    assert re.search(said, caught.value.output)
    assert not (tree / ".venv").exists()


def test_ci_runs_make_test(tree):
    shutil.copytree(ROOT / ".ci", tree / ".ci")
    run(["bash", tree / ".ci/run"], timeout=60, env=environment(tree))
    assert "--nbval " in pip_log(tree)[-1]
