"""A tree of processes for the tests: this one, a child, and a child in a separate session.

    python tree.py PIDS hold|leave

Writes the three pids to the file PIDS; then waits ten minutes, or ends and leaves the children.
"""

import os
import subprocess
import sys
import time

pids, then = sys.argv[1:]
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen(sleeper, start_new_session=own) for own in (False, True)]
with open(pids + ".part", "w") as file:
    print(os.getpid(), *(child.pid for child in children), file=file)
os.rename(pids + ".part", pids)
if then == "hold":
    time.sleep(600)
os._exit(0)
