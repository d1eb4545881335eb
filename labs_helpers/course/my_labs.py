"""Work on your own copies of the labs: python -m labs_helpers.course.my_labs [--reset 02/3]

Copies the labs to my_labs/, never over a file that is there, and opens JupyterLab in it. With --reset it puts
the stub of one exercise back instead.
"""

import argparse
import os
import sys
from pathlib import Path

from labs_helpers.course.at_kernel_start import watch_from_the_start
from labs_helpers.course.own_copies import copy_labs
from labs_helpers.course.reset import reset
from labs_helpers.draw.alternatives import LABEXTENSIONS
from labs_helpers.labs import NOTEBOOKS, ROOT


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="my_labs", description="Work on your own copies of the labs.")
    parser.add_argument("--reset", metavar="02/3", help="put the stub of exercise 3 of lab 02 back, and end")
    parser.add_argument("--labs", type=Path, default=NOTEBOOKS, help="the labs as shipped")
    parser.add_argument("--to", type=Path, default=ROOT / "my_labs", help="your copies")
    parser.add_argument("--copy-only", action="store_true", help="do not open JupyterLab")
    options = parser.parse_args(arguments)
    try:
        if options.reset:
            print(reset(options.reset, options.labs, options.to))
            return 0
        for line in copy_labs(options.labs, options.to):
            print(line)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Your labs are in {options.to}", flush=True)
    if not options.copy_only:
        open_jupyterlab(options.to)
    return 0


def open_jupyterlab(folder: Path) -> None:
    """Become JupyterLab, in `folder`, with this environment's kernel and programs (mpirun)."""
    watch_from_the_start()
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    root = ["--allow-root"] if os.geteuid() == 0 else []
    extensions = [f"--LabApp.extra_labextensions_path={LABEXTENSIONS}"]  # figures with their text alternatives
    os.chdir(folder)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *root, *extensions])


if __name__ == "__main__":
    sys.exit(main())
