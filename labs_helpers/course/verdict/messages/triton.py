"""Error messages of Triton's interpreter and of its compiler, each with its likely cause inside a kernel."""

from labs_helpers.course.verdict.messages.python import EXITS

MEETING = "two blocks of different shapes meet; [:, None] makes a column of rows, [None, :] a row of columns."

PRINTED = (r"is not string", 'print takes a text first inside a kernel: print("a", a), or tl.device_print("a", a).')

# Raised while an answer runs.
AT_RUN_TIME = (
    EXITS,
    (r"acc\.type|accumulator shape", "tl.dot's accumulator is not float32, or not BLOCK_M × BLOCK_N."),
    (
        r"reduction dimension",
        "tl.dot takes M × K and K × N{shapes}: the inner sizes differ. One of the two is turned around: a tl.trans is "
        "missing or too many, or [:, None] and [None, :] are swapped.",
    ),
    (r"same dtype", "tl.dot takes two blocks of one dtype: convert one to the other's, as in p.to(v.dtype)."),
    (r"unexpected keyword argument 'dim'", "dim= is PyTorch's word; Triton's reductions take axis=."),
    (
        r"no attribute '(handle|element_ty|scalar|is_ptr)'",
        "a function of torch inside a kernel. There it is tl: tl.zeros, tl.arange, tl.maximum.",
    ),
    (
        r"operands of type pointer",
        "a block of pointers is not what stands there: tl.load(pointers) reads it.",
    ),
    (r"cannot cast \[", "addresses stand where values are asked for: tl.load(pointers) gives the values."),
    (r"Unsupported ptr type", "tl.load and tl.store take pointers first; what tl.store is to write comes second."),
    (
        r"Expected dtype \['fp32', 'fp64'\]",
        "tl.exp, tl.sigmoid and their like take float32: convert back only in the store.",
    ),
    (r"for \*\* or pow", "Triton has no **: a square is x * x, a root tl.sqrt(x)."),
    (r"for @", "a matrix product inside a kernel is tl.dot(a, b, acc), not a @ b."),
    (r"'triton\.language' has no attribute 'tanh'", "Triton's language has no tanh: 2 * tl.sigmoid(2 * x) - 1 is one."),
    (
        r"'triton\.language' has no attribute 'mean'",
        "Triton has no tl.mean: tl.sum, divided by the number of elements that exist.",
    ),
    (
        r"'triton\.language' has no attribute '[a-z]",
        "tl has no such function: write it with those that tl has, such as tl.maximum(x, 0.0), tl.exp, tl.sigmoid.",
    ),
    (
        r"(int' object is not iterable|cannot unpack non-iterable)[^\n]*\n[^\n]*\w, *\w+ = ",
        "that line takes several values, and the function returned one or none: they all stand behind its `return`.",
    ),
    (r"axis .* out of bounds", "what tl.sum, tl.max and tl.min take second is an axis, counted from 0."),
    PRINTED,
    (r"grid_idx is None|outside of the scope", "the kernel is called without a grid: kernel[grid](…) starts it."),
    (r"'range' object has no", "range is for loops; a block of numbers inside a kernel is tl.arange(0, BLOCK)."),
    (
        r"Value argument cannot be block type if pointer",
        "a block is written to one address: tl.sum or its like makes one number of a block; addresses of many elements "
        "need their offsets.",
    ),
    (
        r"cannot be block type if pointer",
        "those pointers are one address, and the mask is a block: the offsets have to be added.",
    ),
    (r"cannot add pointers", "two addresses are added; an offset, a number of elements, is added to an address."),
    (
        r"'int' object is not iterable",
        "a number stands where a shape is asked for, tl.zeros((BLOCK,), …), or where a loop wants range(…).",
    ),
    (
        r"active drivers",
        "there is no GPU here to time configurations on, as @triton.autotune does with more than one: leave one "
        "triton.Config, or give the block sizes in the launch.",
    ),
    (r"broadcast|shape", MEETING),
    (r"arange", "tl.arange needs two compile-time numbers whose difference is a power of two."),
)

# Said by Triton's compiler of a kernel that ran in the interpreter.
AT_COMPILE_TIME = (
    PRINTED,
    (
        r"NameError[^\n]*\Z",
        'a kernel may use only tl, its arguments and tl.constexpr; infinity is float("inf") there.',
    ),
    (
        r"AST node type: (Break|Continue)[^\n]*\Z",
        "Triton has no break and no continue. Put the end into the loop's bounds.",
    ),
    (
        r"oop-carried|accumulator|acc[^\n]*\Z",
        "the accumulator changes its dtype inside the loop. Start it as tl.float32 and leave it so; the interpreter "
        "promotes it silently, a GPU does not.",
    ),
)
