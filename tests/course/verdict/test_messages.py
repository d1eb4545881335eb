"""Each error message in the tables is said by this Python, NumPy, PyTorch and Triton, and its cause is found."""

import sys

import numpy as np
import pytest
import torch
import torch.distributed as dist
import triton
import triton.language as tl

from labs_helpers.compile.launches import record_launches
from labs_helpers.course.verdict import Truth, Wrong, compiled_for, describe_error, kernel_cases, run_watched
from labs_helpers.course.verdict.messages import OUTSIDE_KERNELS, cause_of
from labs_helpers.course.verdict.messages.triton import AT_COMPILE_TIME, AT_RUN_TIME

X = torch.zeros(16, 16)
ROW = torch.ones(3)
LEAF = torch.nn.Parameter(torch.ones(2))


def no_value_yet():
    value += 1  # noqa: F821, F841


def to_gradient(value):
    LEAF.grad = value


OUTSIDE = (  # what goes wrong, and how its cause begins
    (no_value_yet, "that name has no value yet"),
    (lambda: sys.exit(), "sys.exit(), exit() and quit() end the whole program"),
    (lambda: sorted([(1, {0: 1}), (1, {})]), "sort and min compare the next entries"),
    (lambda: min([None, 1.0]), "None is compared with a number"),
    (lambda: eval("nn.Linear(2, 2)", {}), "the import is missing"),
    (lambda: [1, 2][: 2 / 2], "/ returns a float"),
    (lambda: range(4 / 2), "/ returns a float"),
    (lambda: 2 + (3,), "(n) is a number"),
    (lambda: X.shape[0:1](0), "a tuple is not a function"),
    (lambda: reversed([1, 2])[0], "reversed() takes a list"),
    (lambda: reversed(x for x in "ab"), "reversed() takes a list"),
    (lambda: np.empty(2, 3), "np.empty takes the shape as one tuple"),
    (lambda: np.empty(2, float, "C", 3, 4), "np.empty takes the shape as one tuple"),
    (lambda: np.concatenate(np.ones(2), np.ones(2)), "NumPy expects a single number here and got an array"),
    (lambda: np.concatenate(np.ones(2), 0, axis=0), "NumPy expects a single number here and got an array"),
    (lambda: np.ones((2, 3)).transpose(0, 1, 2), "transpose takes one argument per axis"),
    (lambda: max(ROW, ROW), "max, min, and, or"),
    (lambda: X.T[:3].view(-1), "a tensor may be a transposed or sliced view"),
    (lambda: torch.cat([torch.tensor(1.0), ROW]), "torch.cat joins"),
    (lambda: torch.cat([X, X[:, :3]]), "torch.cat joins"),
    (lambda: torch.cat([X, ROW]), "torch.cat joins"),
    (lambda: torch.stack([ROW, X[0]]), "torch.stack takes tensors of one shape"),
    (lambda: ROW.view(2, 2), "reshape, view and split keep"),
    (lambda: ROW.split([1, 1]), "reshape, view and split keep"),
    (lambda: LEAF.add_(1), "the code writes to a parameter while autograd records"),
    (lambda: to_gradient(ROW), ".grad must have its parameter's shape"),
    (lambda: torch.zeros(3).scatter(0, torch.tensor([0]), ROW.double()), "scatter needs both tensors in one dtype"),
    (lambda: X.max(-1) - 1, "t.max(-1) returns"),
    (lambda: torch.mm(X, ROW), "dot takes vectors"),
    (lambda: torch.bmm(X, X), "dot takes vectors"),
    (lambda: torch.dot(X, ROW), "dot takes vectors"),
    (lambda: float(ROW), "functions of math, float() and int() take one number"),
    (lambda: dist.all_reduce(ROW), "group= is missing"),
    (lambda: dist.all_reduce(1.0), "a collective takes a tensor"),
    (lambda: dist.all_reduce(None), "p.grad is None"),
    (lambda: dist.all_reduce(ROW, asynchronous=True), "the arguments are all_reduce"),
    (lambda: None.wait(), "async_op=True returns a handle"),
    (lambda: ROW.all_reduce(), "collectives are functions of torch.distributed"),
)
# What practice ranks say; the planted bugs of labs 06 to 09 and tests/data_parallel/practice make them say it.
SAID = (
    "BufferError: the buffer is not contiguous: shape (2,), strides (32,); send a copy",
    "SendBufferOverwritten: send buffer overwritten: rank 0 changed element 0",
    "ValueError: Allgather: send and recv share memory; receive into an array of its own",
    "TypeError: rank 1 sent int64, rank 0 receives it as float64",
    "TypeError: GroupComm.Allgather() missing 1 required positional argument: 'recvbuf'",
    "Mismatch: rank 1 calls all_reduce where rank 0 calls broadcast",
    "Mismatch: all_reduce: elements is 2 on rank 1 and 1 on rank 0",
    "Mismatch: all_reduce: dtype is int64 on rank 1 and float32 on rank 0",
    "Mismatch: broadcast: src is 1 on rank 1 and 0 on rank 0",
    "TouchedTooEarly: rank 0 changed a tensor of all_reduce between its start and its wait()",
    "TouchedTooEarly: rank 0 sent a tensor of all_reduce a second time before the first one's wait()",
    "ValueError: Must specify global_rank or group_rank",
    "ValueError: Global rank 5 is not part of group <practice group of ranks 0, 1>",
    "ValueError: all_reduce: tensors must be contiguous; this one has shape (2,), strides (2,)",
    "RuntimeError: reduce_scatter_tensor: input has shape (3,); 2 ranks × output (2,)",
    "TypeError: incompatible function arguments (arg0: Options) <practice group of ranks 0, 1>",
    "TypeError: incompatible function arguments (arg0: Options) 'sum'",
)


@triton.jit
def small_accumulator(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(x_ptr + i[:, None] * N + i[None, :], tl.dot(x, x, tl.zeros((N, 2 * N), dtype=tl.float32)))


@triton.jit
def inner_sizes(x_ptr, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, 2 * N)
    x = tl.load(x_ptr + i[:, None] * 0 + k[None, :] * 0)
    tl.store(x_ptr + i[:, None] * N + i[None, :], tl.dot(x, tl.load(x_ptr + i[:, None] * N + i[None, :])))


@triton.jit
def two_dtypes(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(x_ptr + i[:, None] * N + i[None, :], tl.dot(x.to(tl.float16), x))


@triton.jit
def dim_for_axis(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), dim=0))


@triton.jit
def torch_inside(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.load(x_ptr + torch.arange(0, N)))


@triton.jit
def at_sign(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(x_ptr + i[:, None] * N + i[None, :], x @ x)


@triton.jit
def printed(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print(x)
    tl.store(x_ptr + tl.arange(0, N), x)


@triton.jit
def shapes_meet(x_ptr, N: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, 2 * N)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + tl.load(x_ptr + k))


@triton.jit
def odd_range(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N - 1)
    tl.store(x_ptr + i, tl.load(x_ptr + i))


@triton.jit
def a_mean(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.mean(tl.load(x_ptr + tl.arange(0, N))))


@triton.jit
def no_such_axis(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), 1))


@triton.jit
def pointers_added(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, 1.0 + (x_ptr + i))


@triton.jit
def store_turned(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(tl.load(x_ptr + i), x_ptr + i)


@triton.jit
def exp_of_half(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, tl.exp(tl.load(x_ptr + i).to(tl.float16)))


@triton.jit
def root_by_power(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N))) ** 0.5)


@triton.jit
def addresses_stored(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), x_ptr + tl.arange(0, N))


@triton.jit
def math_inside(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), abs(pytest.approx(1.0).expected))


@triton.jit
def breaks(x_ptr, N: tl.constexpr):
    for i in range(N):
        if i == 2:
            break
        tl.store(x_ptr + i, 0.0)


@triton.jit
def promoted(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), dtype=tl.float16)
    for _ in range(N):
        acc += tl.load(x_ptr + i).to(tl.float32)
    tl.store(x_ptr + i, acc)


@triton.jit
def in_a_range(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + (range(N) + tl.arange(0, N)), 0.0)


@triton.jit
def one_address(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.load(x_ptr, mask=tl.arange(0, N) < N))


@triton.jit
def numbered(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.program_id(0), 0.0)


@triton.jit
def no_shape(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.zeros(N, dtype=tl.float32))


@triton.jit
def larger_of_two(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), max(x, 0.0))


@triton.jit
def block_at_one_address(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.load(x_ptr + tl.arange(0, N)))


@triton.jit
def addresses_added(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + x_ptr, 0.0)


@triton.jit
def no_such_function(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.relu(tl.load(x_ptr + tl.arange(0, N))))


@triton.jit
def one(x):
    return x


@triton.jit
def one_for_two(x_ptr, N: tl.constexpr):
    first, second = one(N)
    tl.store(x_ptr + first, second)


@triton.jit
def leaves(x_ptr, N: tl.constexpr):
    exit()


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [
        (small_accumulator, "tl.dot's accumulator is not float32, or its shape is not BLOCK_M"),
        (inner_sizes, "tl.dot takes M × K and K × N, here 16×32 and 16×16: the inner sizes differ"),
        (two_dtypes, "tl.dot takes two blocks of one dtype"),
        (dim_for_axis, "dim= belongs to PyTorch"),
        (torch_inside, "the kernel calls a function of torch"),
        (at_sign, "inside a kernel, write a matrix product as tl.dot"),
        (printed, "inside a kernel, print takes a text first"),
        (shapes_meet, "two blocks of different shapes are combined"),
        (odd_range, "tl.arange needs two compile-time constants"),
        (root_by_power, "Triton has no **"),
        (addresses_stored, "addresses are used where values are needed"),
        (a_mean, "Triton has no tl.mean"),
        (no_such_axis, "is an axis, counted from 0"),
        (pointers_added, "the kernel computes with pointers instead of values"),
        (store_turned, "tl.load and tl.store take pointers as their first argument"),
        (exp_of_half, "tl.exp, tl.sigmoid and similar functions take float32"),
        (in_a_range, "inside a kernel, a block of numbers is tl.arange"),
        (one_address, "the pointer is one address"),
        (block_at_one_address, "the store writes a block to one address"),
        (addresses_added, "two addresses are added"),
        (no_such_function, "tl has no such function"),
        (one_for_two, "that line expects several values"),
        (leaves, "sys.exit(), exit() and quit() end the whole program"),
        (no_shape, "Triton got a number where it needs a shape"),
    ],
    ids=lambda value: getattr(getattr(value, "fn", None), "__name__", ""),
)
def test_at_run_time(kernel, cause):
    with pytest.raises(Wrong) as caught:
        run_watched("", lambda x: kernel[(1,)](x, N=16), X.clone())
    assert cause in "; ".join(caught.value.causes), str(caught.value)


def test_a_kernel_without_a_grid_or_with_a_number_for_one():
    with pytest.raises(Wrong, match=r"Likely cause: the kernel is called without a grid: launch it as kernel\[grid\]"):
        run_watched("", lambda x: numbered(x, N=16), X.clone())
    with pytest.raises(Wrong, match=r"a grid is a tuple of one to three numbers, such as \(2,\), not 2"):
        run_watched("", lambda x: numbered[2](x, N=16), X.clone())


@triton.autotune([triton.Config({"N": 16}), triton.Config({"N": 8})], key=["size"])
@triton.jit
def timed(x_ptr, size, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 0.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to time configurations on")
def test_autotune_in_the_interpreter():
    with pytest.raises(Wrong, match=r"Likely cause: @triton.autotune has no GPU here to time its"):
        run_watched("", lambda x: timed[(1,)](x, 16), X.clone())


@triton.jit
def through_memory(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, tl.load(x_ptr + i))
    tl.store(z_ptr + i, tl.load(y_ptr + i))


@pytest.mark.parametrize(
    ("scratch", "finish", "found"),
    [
        (torch.empty_like, lambda z: z, "the kernel stores 64 bytes to a tensor other than its result"),
        (torch.empty_like, lambda z: z.copy_(z), "copy_"),
        (torch.clone, lambda z: z, "clone"),
        (
            torch.empty_like,
            lambda z: print(z.abs().max().item()) or z,
            "abs, max, item(.|\n)*debugging code is left: remove it",
        ),
    ],
)
def test_fused_is_nothing_beside_one_kernel_and_its_result(scratch, finish, found):
    def answer(x):
        y, z = scratch(x), torch.empty_like(x)
        through_memory[(1,)](x, y, z, N=16)
        return finish(z)

    trials = kernel_cases(answer, [("", torch.ones(16))], lambda x: Truth(x.double(), 0.0, ""), fused=True)
    with pytest.raises(Wrong, match=found):
        list(trials)


def test_what_is_never_right_is_named_before_what_the_values_suggest():
    def answer(x):
        larger_of_two[(1,)](x, N=16)

    wrong = describe_error(answer, Wrong("case", "2", "3", cause="x is not added"))
    assert len(wrong.causes) == 1 and wrong.causes[0].startswith(
        "Python's max() inside a kernel does not work on blocks"
    )
    assert describe_error(over_range, Wrong("case", "2", "3", cause="x is not added")).causes == ("x is not added",)
    assert "a loop needs range" in describe_error(over_range, Wrong("case", "2", "3")).causes[0]


@triton.jit
def loops_over_a_number(x_ptr, n, N: tl.constexpr):
    for _ in n:
        tl.store(x_ptr, 0.0)


def over_range(x):
    loops_over_a_number[(1,)](x, 3, N=16)


def test_an_error_outside_a_kernel_is_not_explained_by_one():
    for broken in (lambda x: x + torch.zeros(3), lambda x: torch.zeros(2, 3) @ x, lambda x: x.numpy() + x.numpy()[:3]):
        wrong = describe_error(broken, pytest.raises((RuntimeError, ValueError), broken, X.clone()).value)
        assert not wrong.causes and ("shape" in wrong.found or "size" in wrong.found)


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [
        (printed, "print takes a text first"),
        (math_inside, "a kernel may use only tl, its arguments"),
        (breaks, "Triton has no break"),
        (promoted, "the accumulator changes its dtype inside the loop"),
    ],
    ids=lambda value: getattr(getattr(value, "fn", None), "__name__", ""),
)
def test_at_compile_time(kernel, cause):
    with record_launches(run=False) as launches:
        kernel[(1,)](X, N=16)
    with pytest.raises(Wrong) as caught:
        compiled_for("", launches[0], "sm_90", (torch.float16, ""))
    assert cause in "; ".join(caught.value.causes), str(caught.value)


def test_every_line_of_the_tables_is_tried():
    assert (len(AT_RUN_TIME), len(AT_COMPILE_TIME)) == (27, 4)
    tried = {cause for broken, _ in OUTSIDE for cause in describe_error(broken, raised_by(broken)).causes}
    tried |= {cause_of(text, OUTSIDE_KERNELS) for text in SAID}
    assert tried == {cause for _, cause in OUTSIDE_KERNELS if not callable(cause)}


def raised_by(broken) -> Exception:
    try:
        return broken()
    except (Exception, SystemExit) as error:
        return error


@pytest.mark.parametrize(("broken", "cause"), OUTSIDE)
def test_outside_of_kernels(broken, cause):
    assert [said.startswith(cause) for said in describe_error(broken, raised_by(broken)).causes] == [True]


def test_the_causes_of_an_exercise_count_first_and_see_the_student_s_line():
    def answer():
        return [1, 2][: 2 / 2]

    errors = [(r"line \d+: return .* / ", "this one")]
    assert describe_error(answer, raised_by(answer), errors=errors).causes == ("this one",)
