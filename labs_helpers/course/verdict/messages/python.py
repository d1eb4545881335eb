"""Error messages of Python itself."""

WHOLE = "/ makes a float, even where nothing is left over; // makes an integer"
ERRORS = (
    (
        r"^UnboundLocalError",
        "that name has no value yet: an `if` leaves a case out, or an assignment in an inner function makes the name "
        "its own from the first line on: take another name, or say `nonlocal`",
    ),
    (r"^NameError: name '(torch|dist|nn|np)'", "the import is missing in your cell"),
    (r"^TypeError: (slice indices must be integers|'float' object cannot be interpreted)", WHOLE),
    (r"^TypeError: .* for \+: ('int' and 'tuple'|'tuple' and 'int')", "(n) is a number; (n,) is a tuple of one"),
    (
        r"^TypeError: .*('list_reverseiterator' object|not reversible)",
        "reversed() takes a list, and returns an iterator: list(reversed(…)) is a list",
    ),
    (
        r"^TypeError: '(tuple|torch.Size)' object is not callable",
        "a tuple is no function: x.shape[2], in square brackets",
    ),
)
