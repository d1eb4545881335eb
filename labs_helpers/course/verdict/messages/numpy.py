"""Error messages of NumPy."""

ERRORS = (
    (
        r"^TypeError: (Cannot interpret '.*' as a data type|empty\(\) takes)",
        "np.empty takes the shape as one tuple: np.empty((2, 3))",
    ),
    (
        r"^TypeError: (only integer scalar arrays can be converted|concatenate\(\) got multiple)",
        "NumPy expects a single number here and got an array; to join arrays, pass one list: np.concatenate([a, b])",
    ),
    (r"^ValueError: axes don't match array", "transpose takes one argument per axis of the array"),
)
