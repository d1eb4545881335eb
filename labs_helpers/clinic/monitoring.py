"""What to watch while a job trains: metrics, the bound at which to raise an alert, and the commands that show them."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """A number to record in every step or minute, the bound of its alert, and the words of the alert."""

    name: str
    alert_if: str
    words: str


METRICS = (
    Metric("tokens per second", "below 0.9 of the last hour's median", "the job has become slower: attribute a step"),
    Metric("spread of work between ranks", "above 1.1 for 100 steps", "rank R is slower: its data, clocks, or node"),
    Metric("clock of each GPU", "below 0.9 of the others' median", "GPU G is throttled: heat, or a power limit"),
    Metric("wait for the loader", "above 5% of a step", "the loader falls behind: storage, or too few workers"),
    Metric("memory headroom", "below 5%, or falling for 100 steps", "memory runs out in N steps: find what grows"),
    Metric("allocator's retries", "above 0", "memory is nearly full, or scattered: compare reserved with allocated"),
    Metric("gradient norm", "not finite, or above 10 times its median", "step S: overflow, or a bad batch on rank R"),
    Metric("steps without an update", "above 5 in a row", "all updates are skipped: the loss scale cannot fall"),
    Metric("checksum of the weights", "differs between replicas", "replicas differ since step S: stop, and compare"),
    Metric("seconds since the last step", "above 10 times the median step", "the job hangs: dump stacks and recorders"),
)


class Command(NamedTuple):
    """A question, and the command that answers it on NVIDIA's and on AMD's machines."""

    question: str
    nvidia: str
    amd: str


COMMANDS = (
    Command("Does any kernel run?", "nvidia-smi dmon -s u", "amd-smi monitor -u"),
    Command("How much memory is used?", "nvidia-smi --query-gpu=memory.used --format=csv", "amd-smi monitor -v"),
    Command("Do heat or power lower clocks?", "nvidia-smi -q -d PERFORMANCE", "amd-smi metric --clock --violation"),
    Command("Which GPUs share a fast link?", "nvidia-smi topo -m", "amd-smi topology"),
    Command("Are there memory errors?", "nvidia-smi -q -d ECC", "amd-smi metric --ecc"),
    Command("What did the driver report?", "dmesg | grep -i xid", "dmesg | grep -i amdgpu"),
    Command("How fast is an all-reduce?", "all_reduce_perf -b 8 -e 1G -f 2 -g 8 (nccl-tests)", "the same (rccl-tests)"),
    Command("What ran when?", "nsys profile python train.py", "rocprofv3 --sys-trace -- python train.py"),
    Command(
        "Why is this kernel slow?",
        "ncu --set full -k regex:NAME -c 1 python train.py",
        "rocprof-compute profile -n RUN -k NAME -- python train.py",
    ),
    Command("Where does Python stand?", "py-spy dump --pid PID", "py-spy dump --pid PID"),
)
