"""Error messages of Python itself."""

WHOLE = "/ makes a float, even where nothing is left over; // makes an integer"
EXITS = (r"^SystemExit", "sys.exit(), exit() and quit() end the whole program; a function ends with return")
ERRORS = (
    EXITS,
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
        r"^TypeError: '[<>]' not supported between instances of '(\w+)' and '\1'",
        "where the first entries of two tuples are equal, sort and min compare the next ones, and those have no order: "
        "give them a key that leaves them out",
    ),
    (r"^TypeError: '[<>]=?' not supported .*'NoneType'", "None is compared with a number; math.inf is above them all"),
    (
        r"^TypeError: '(tuple|torch.Size)' object is not callable",
        "a tuple is no function: x.shape[2], in square brackets",
    ),
)
