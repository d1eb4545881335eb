"""Objects that answers to lab 07 wrongly keep from one call to the next; the second call must reveal it."""

KEPT = "(second|two calls|then mp)(.|\n)*it keeps something from one call to the next"


def keeping(imports: str, old: str, new: str) -> list[tuple[str, str]]:
    """The answer with a dict `kept` in its module, and `old` in it replaced."""
    return [(imports, f"{imports}\n\nkept = {{}}\n"), (old, new)]


BUGS = [
    (
        "get_info",
        "communicators made once",
        [
            ("\ndef get_info(", "\nkept = {}\n\n\ndef get_info("),
            ("mp_comm = comm.Split(color=dp_idx, key=mp_idx)", "mp_comm = kept.get(1) or comm.Split(dp_idx, mp_idx)"),
            (
                "dp_comm = comm.Split(color=mp_idx, key=dp_idx)",
                "dp_comm = kept.get(2) or comm.Split(mp_idx, dp_idx)\n    kept.update({1: mp_comm, 2: dp_comm})",
            ),
        ],
        KEPT,
    ),
    (
        "naive_collect_forward_input",
        "one result for all calls",
        keeping(
            "import numpy as np",
            "    return np.concatenate(list(parts), axis=2)\n",
            "    whole = np.concatenate(list(parts), axis=2)\n    kept.setdefault(whole.shape, whole)[...] = whole\n"
            "    return kept[whole.shape]\n",
        ),
        KEPT,
    ),
    (
        "naive_collect_backward_x",
        "one result for all calls",
        keeping(
            "import numpy as np",
            "    mine = np.empty((batch, length, features // mp_size), grad_x.dtype)\n",
            "    mine = np.empty((batch, length, features // mp_size), grad_x.dtype)\n"
            "    mine = kept.setdefault((mine.shape, mine.dtype), mine)\n",
        ),
        KEPT,
    ),
    (
        "average_gradients",
        "one vector for all calls",
        keeping(
            "import torch",
            "    mean = dp_group.all_reduce(vector) / dp_group.size\n",
            "    mean = dp_group.all_reduce(vector) / dp_group.size\n"
            "    mean = kept.setdefault(mean.numel(), mean).copy_(mean)\n",
        ),
        KEPT,
    ),
    (
        "parallel_cross_entropy",
        "one mask for all calls",
        keeping(
            "import torch",
            "    mine = (row >= 0) & (row < rows)\n",
            "    mine = kept.setdefault(row.shape, (row >= 0) & (row < rows))\n",
        ),
        KEPT,
    ),
]
DIFFERENT: list = []
