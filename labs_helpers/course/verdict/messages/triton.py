"""Error messages of Triton's interpreter and compiler, each with its likely cause inside a kernel."""

from labs_helpers.course.verdict.messages.python import EXITS

MEETING = "two blocks of different shapes are combined; [:, None] makes a column of rows, [None, :] a row of columns."

PRINTED = (r"is not string", 'inside a kernel, print takes a text first: print("a", a) or tl.device_print("a", a).')

# Raised during a run of the answer.
AT_RUN_TIME = (
    EXITS,
    (r"acc\.type|accumulator shape", "tl.dot's accumulator is not float32, or its shape is not BLOCK_M × BLOCK_N."),
    (
        r"reduction dimension",
        "tl.dot takes M × K and K × N{shapes}: the inner sizes differ. One operand is transposed: a tl.trans is "
        "missing or superfluous, or [:, None] and [None, :] are swapped.",
    ),
    (r"same dtype", "tl.dot takes two blocks of one dtype: convert one of them, as in p.to(v.dtype)."),
    (r"unexpected keyword argument 'dim'", "dim= belongs to PyTorch; Triton's reductions take axis=."),
    (
        r"no attribute '(handle|element_ty|scalar|is_ptr)'",
        "the kernel calls a function of torch. Inside a kernel, use tl: tl.zeros, tl.arange, tl.maximum.",
    ),
    (
        r"operands of type pointer",
        "the kernel computes with pointers instead of values: tl.load(pointers) reads the values.",
    ),
    (r"cannot cast \[", "addresses are used where values are needed: tl.load(pointers) returns the values."),
    (
        r"Unsupported ptr type",
        "tl.load and tl.store take pointers as their first argument; the second argument of tl.store is the value.",
    ),
    (
        r"Expected dtype \['fp32', 'fp64'\]",
        "tl.exp, tl.sigmoid and similar functions take float32: convert back only in the store.",
    ),
    (r"for \*\* or pow", "Triton has no **: write a square as x * x, a root as tl.sqrt(x)."),
    (r"for @", "inside a kernel, write a matrix product as tl.dot(a, b, acc), not a @ b."),
    (
        r"'triton\.language' has no attribute 'tanh'",
        "Triton's language has no tanh: compute it as 2 * tl.sigmoid(2 * x) - 1.",
    ),
    (
        r"'triton\.language' has no attribute 'mean'",
        "Triton has no tl.mean: divide tl.sum by the number of elements that exist.",
    ),
    (
        r"'triton\.language' has no attribute '[a-z]",
        "tl has no such function: use the ones that it has, such as tl.maximum(x, 0.0), tl.exp, tl.sigmoid.",
    ),
    (
        r"(int' object is not iterable|cannot unpack non-iterable)[^\n]*\n[^\n]*\w, *\w+ = ",
        "that line expects several values, but the function returned one or none: list them all after its `return`.",
    ),
    (r"axis .* out of bounds", "the second argument of tl.sum, tl.max and tl.min is an axis, counted from 0."),
    PRINTED,
    (r"grid_idx is None|outside of the scope", "the kernel is called without a grid: launch it as kernel[grid](…)."),
    (r"'range' object has no", "range is for loops; inside a kernel, a block of numbers is tl.arange(0, BLOCK)."),
    (
        r"Value argument cannot be block type if pointer",
        "the store writes a block to one address. Reduce the block to one number with tl.sum or a similar "
        "function, or add offsets to the address.",
    ),
    (
        r"cannot be block type if pointer",
        "the pointer is one address, but the mask is a block: add the offsets to the address.",
    ),
    (r"cannot add pointers", "two addresses are added; add an offset (a number of elements) to an address instead."),
    (
        r"'int' object is not iterable",
        "Triton got a number where it needs a shape, as in tl.zeros((BLOCK,), …), or where a loop needs range(…).",
    ),
    (
        r"active drivers",
        "@triton.autotune has no GPU here to time its configurations: leave one triton.Config, or give the block "
        "sizes in the launch.",
    ),
    (r"broadcast|shape", MEETING),
    (r"arange", "tl.arange needs two compile-time constants whose difference is a power of two."),
)

# Raised by Triton's compiler for a kernel that ran in the interpreter.
AT_COMPILE_TIME = (
    PRINTED,
    (
        r"NameError[^\n]*\Z",
        'a kernel may use only tl, its arguments and tl.constexpr; write infinity as float("inf").',
    ),
    (
        r"AST node type: (Break|Continue)[^\n]*\Z",
        "Triton has no break and no continue. Put the condition into the loop's bounds.",
    ),
    (
        r"oop-carried|accumulator|acc[^\n]*\Z",
        "the accumulator changes its dtype inside the loop. Create it as tl.float32 and keep that dtype; the "
        "interpreter promotes it silently, a GPU does not.",
    ),
)
