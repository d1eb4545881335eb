"""Exercise 9 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "average_gradients"
VECTOR = "    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])\n"
MEAN = "    mean = dp_group.all_reduce(vector) / dp_group.size\n"
SPLIT = "    parts = mean.split([gradient.numel() for gradient in gradients])\n"
SHAPED = "part.reshape(old.shape)"
RETURN = f"    return [{SHAPED} for part, old in zip(parts, gradients, strict=True)]\n"
ANSWER = VECTOR + MEAN + SPLIT + RETURN


def instead(old: str, lines: str) -> list[tuple[str, str]]:
    return [(old, "".join(f"    {line}\n" for line in lines.splitlines()))]


BUGS: list = [
    (NAME, "the sum", [(" / dp_group.size", "")], "it is the sum, not the mean; the division by"),
    (
        NAME,
        "divided before and after",
        [("all_reduce(vector)", "all_reduce(vector / dp_group.size)")],
        r"it divides by dp_group\.size twice",
    ),
    (
        NAME,
        "by the ranks of a model",
        [("/ dp_group.size", "/ 2")],
        "it divides by the number of ranks of a model;",
    ),
    (
        NAME,
        "by all ranks of the grid",
        [("import torch", "import torch\nfrom mpi4py import MPI"), ("/ dp_group.size", "/ MPI.COMM_WORLD.size")],
        "it divides by the number of ranks in the",
    ),
    (
        NAME,
        "by the number of tensors",
        [("/ dp_group.size", "/ len(gradients)")],
        "it divides by the number of gradients; divide",
    ),
    (
        NAME,
        "by a number",
        [("/ dp_group.size", "/ 4")],
        r"3 ranks(.|\n)*it divides by 4, whatever dp_group\.size is",
    ),
    (
        NAME,
        "by the others",
        [("/ dp_group.size", "/ max(1, dp_group.size - 1)")],
        "it divides by the number of other ranks;",
    ),
    (
        NAME,
        "its own added once more",
        [("all_reduce(vector) /", "all_reduce(vector).add_(vector) /")],
        "the rank's own gradients are counted twice;",
    ),
    (
        NAME,
        "by the rank",
        [("/ dp_group.size", "/ (dp_group.rank + 1)")],
        r"it divides by dp_group\.rank, which differs on",
    ),
    (
        NAME,
        "a mean over the elements",
        [("/ dp_group.size", "/ vector.numel()")],
        "it divides by the number of all elements;",
    ),
    (
        NAME,
        "the sum is dropped",
        instead(MEAN, "dp_group.all_reduce(vector)\nmean = vector / dp_group.size"),
        "nothing is added up; all_reduce returns the",
    ),
    (
        NAME,
        "its own gradients",
        instead(ANSWER, "return [gradient.clone() for gradient in gradients]"),
        "nothing is added up",
    ),
    (
        NAME,
        "an all-reduce for each",
        instead(ANSWER, "return [dp_group.all_reduce(gradient) / dp_group.size for gradient in gradients]"),
        "the values are right, but rank 0 makes 7 × all_reduce, 152 bytes"
        "(.|\n)*it makes one all-reduce per gradient: every",
    ),
    (
        NAME,
        "everybody's gradients to everybody",
        instead(MEAN, "mean = dp_group.all_gather(vector).reshape(dp_group.size, -1).mean(0)"),
        "1 × all_gather, 608 bytes(.|\n)*every rank receives all gradients; an",
    ),
    (
        NAME,
        "float64 on the way",
        [("gradient.reshape(-1)", "gradient.reshape(-1).double()"), (SHAPED, f"{SHAPED}.float()")],
        "1 × all_reduce, 304 bytes; one all_reduce of 152 bytes is enough(.|\n)*wider dtype",
    ),
    (
        NAME,
        "float64 in the end",
        [("gradient.reshape(-1)", "gradient.reshape(-1).double()")],
        "mean 0 is torch.float64, expected torch.float32",
    ),
    (
        NAME,
        "bfloat16 on the way",
        [("all_reduce(vector)", "all_reduce(vector.bfloat16()).float()")],
        "fewer bits than float32",
    ),
    (
        NAME,
        "the largest",
        [("all_reduce(vector)", 'all_reduce(vector, "max")')],
        "it takes the largest gradient, not the sum",
    ),
    (
        NAME,
        "rows of padded gradients",
        instead(
            ANSWER,
            "most = max(one.numel() for one in gradients)\nrows = torch.zeros(len(gradients), most)\n"
            "for row, one in zip(rows, gradients):\n    row[: one.numel()] = one.reshape(-1)\n"
            "rows = dp_group.all_reduce(rows) / dp_group.size\n"
            "return [row[: one.numel()].reshape(one.shape) for row, one in zip(rows, gradients)]",
        ),
        "1 × all_reduce, 336 bytes(.|\n)*the message has a wider dtype than float32,",
    ),
    (
        NAME,
        "the last gradient first in the vector",
        [("gradient in gradients])\n    mean", "gradient in gradients[::-1]])\n    mean")],
        "the gradients are joined in one order and",
    ),
    (NAME, "the list in reverse", [("strict=True)]", "strict=True)][::-1]")], "in the reverse order of the gradients"),
    (
        NAME,
        "the elements as they lie in memory",
        [
            ("import torch", "import numpy as np\nimport torch"),
            *instead(
                VECTOR, "vector = torch.from_numpy(np.concatenate([one.numpy().ravel(order='K') for one in gradients]))"
            ),
        ],
        "the elements are in memory order; reshape",
    ),
    (
        NAME,
        "the gradients' strides for parts of a vector",
        [(SHAPED, "part.as_strided(old.shape, old.stride())")],
        "as_strided reads a part as if it had the",
    ),
    (
        NAME,
        "view in place of reshape",
        [("gradient.reshape(-1)", "gradient.view(-1)")],
        "view size is not compatible(.|\n)*reshape and flatten accept it, view does not",
    ),
    (
        NAME,
        "every part from the start",
        instead(SPLIT, "parts = [mean[: one.numel()] for one in gradients]"),
        "every part starts at element 0 of the vector",
    ),
    (NAME, "flat parts", [(SHAPED, "part")], "the parts of the vector are still flat; give"),
    (
        NAME,
        "squeezed",
        [(SHAPED, f"{SHAPED}.squeeze()")],
        r"mean 1; (.|\n)*got shape \(4,\)(.|\n)*squeeze drops dimensions of size 1",
    ),
    (
        NAME,
        "single numbers squeezed",
        [(SHAPED, f"({SHAPED} if part.numel() != 1 else part.squeeze())")],
        r"mean 4; (.|\n)*got shape \(\), expected shape \(1,\)(.|\n)*squeeze drops dimensions of size 1",
    ),
    (
        NAME,
        "a vector",
        instead(SPLIT + RETURN, "return mean"),
        r"a tensor of shape \(38,\)(.|\n)*the vector is not split into the gradients yet",
    ),
    (
        NAME,
        "lengths for sizes",
        [(".numel() for", ".shape[0] * gradient.shape[-1] for")],
        "tuple index out of range(.|\n)*numel",
    ),
    (
        NAME,
        "gradients without elements left out",
        [(VECTOR, "    gradients = [one for one in gradients if one.numel()]\n" + VECTOR)],
        "a gradient without elements is left out",
    ),
    (
        NAME,
        "divided in place",
        instead(
            MEAN,
            "for gradient in gradients:\n    gradient /= dp_group.size\n"
            "mean = dp_group.all_reduce(vector) / dp_group.size",
        ),
        r"gradients\[0\] must stay unchanged: gradients\[0\]\[0, 0\] was 1.54(.|\n)*write into the argument",
    ),
    (
        NAME,
        "other objects in the list",
        instead(
            RETURN,
            "for i, part in enumerate(parts):\n    gradients[i] = part.reshape(gradients[i].shape)\nreturn gradients",
        ),
        r"the list gradients has a different object at index 0(.|\n)*build a new list",
    ),
    (
        NAME,
        "reduced in place",
        instead(ANSWER, "return [dp_group.all_reduce(one, in_place=True) for one in gradients]"),
        "x is written to(.|\n)*in_place=True overwrites its argument, but",
    ),
    (
        NAME,
        "one rank's own gradients",
        [(VECTOR, f"    if dp_group.size == 1:\n        return gradients\n{VECTOR}")],
        "1 rank: rank 0's means share memory with its gradients",
    ),
    (
        NAME,
        "the list is reduced",
        [("all_reduce(vector)", "all_reduce(gradients)")],
        "'list' object has no attribute(.|\n)*the operation takes one tensor, not a list",
    ),
    (
        NAME,
        "the vector of transposes",
        [("gradient.reshape(-1)", "gradient.permute(tuple(range(gradient.ndim))[::-1]).reshape(-1)")],
        "matrices are transposed; a part of the vector",
    ),
]
DIFFERENT: list = [
    (NAME, [(MEAN, "    mean = dp_group.all_reduce(vector / dp_group.size)\n")]),
    (NAME, instead(MEAN, "dp_group.all_reduce(vector, in_place=True)\nmean = vector.div_(dp_group.size)")),
    (
        NAME,
        instead(
            SPLIT + RETURN,
            "means, start = [], 0\nfor old in gradients:\n"
            "    means.append(mean[start : start + old.numel()].view(old.shape))\n"
            "    start += old.numel()\nreturn means",
        ),
    ),
    (NAME, [("gradient.reshape(-1)", "gradient.flatten()"), (SHAPED, "part.view_as(old).clone()")]),
    (
        NAME,
        instead(
            RETURN,
            "means = [torch.empty_like(old) for old in gradients]\n"
            "for new, part in zip(means, parts):\n    new.copy_(part.view(new.shape))\nreturn tuple(means)",
        ),
    ),
    (
        NAME,
        [("import torch", "import torch\nfrom torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors")]
        + instead(
            ANSWER,
            "mean = dp_group.all_reduce(_flatten_dense_tensors(gradients)) / dp_group.size\n"
            "return list(_unflatten_dense_tensors(mean, gradients))",
        ),
    ),
]
