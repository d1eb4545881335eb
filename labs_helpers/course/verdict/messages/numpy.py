"""Error messages of NumPy."""

ERRORS = (
    (
        r"^TypeError: (Cannot interpret '.*' as a data type|empty\(\) takes)",
        "np.empty takes the shape as one tuple: np.empty((2, 3))",
    ),
    (
        r"^TypeError: (only integer scalar arrays can be converted|concatenate\(\) got multiple)",
        "an array stands where a single number belongs; NumPy joins arrays out of one list: np.concatenate([a, b])",
    ),
    (r"^ValueError: axes don't match array", "transpose takes as many axes as the array has"),
)
