"""Work on your own copies of the labs: python -m labs_helpers.course.my_labs [--reset 02/3]

Copies the labs to my_labs/ without overwriting any file, and opens JupyterLab, which also shows the course's files,
read-only. If JupyterLab is already running, prints its address. With --reset, only restores the stub of one exercise.
"""

import argparse
import os
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from jupyter_server.serverapp import list_running_servers

from labs_helpers.course.at_kernel_start import watch_from_the_start
from labs_helpers.course.own_copies import copy_labs
from labs_helpers.course.reset import reset
from labs_helpers.draw.alternatives import LABEXTENSIONS
from labs_helpers.labs import NOTEBOOKS, ROOT


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="my_labs", description="Work on your own copies of the labs.")
    parser.add_argument("--reset", metavar="02/3", help="restore the stub of exercise 3 of lab 02, and exit")
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
    """Replace this process with JupyterLab, opened at `folder`, with this environment's kernel and programs
    (mpirun). Its root is the parent folder, which contains the sources that the labs link to."""
    if address := running_at(folder):
        print(f"JupyterLab is already running: {address}", flush=True)
        webbrowser.open(address)
        return
    watch_from_the_start()
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["LABS_MY_LABS"] = str(folder)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    root = ["--allow-root"] if os.geteuid() == 0 else []
    options = [
        f"--ServerApp.root_dir={folder.parent}",
        "--ServerApp.contents_manager_class=labs_helpers.course.read_only.OwnFolderOnly",
        f"--OwnFolderOnly.own={folder.name}",
        f"--OwnFolderOnly.preferred_dir={folder.name}",
        f"--LabApp.default_url=/lab/tree/{quote(folder.name)}",
        f"--LabApp.extra_labextensions_path={LABEXTENSIONS}",  # figures with their text alternatives
    ]
    os.chdir(folder)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *root, *options])


def running_at(folder: Path) -> str:
    """Return the address of a running JupyterLab that was opened at `folder` and answers; otherwise ''."""
    for server in list_running_servers():
        if Path(server["root_dir"]) != folder.parent.resolve():
            continue
        token = f"token={server['token']}" if server["token"] else ""
        with suppress(OSError):  # another machine's, with the same home
            urlopen(f"{server['url']}api/status?{token}", timeout=5).close()
            return f"{server['url']}lab/tree/{quote(folder.name)}?{token}".rstrip("?")
    return ""


if __name__ == "__main__":
    sys.exit(main())
