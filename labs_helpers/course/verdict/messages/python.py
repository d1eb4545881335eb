"""Error messages of Python itself."""

WHOLE = "/ returns a float even if there is no remainder; // returns an integer"
EXITS = (r"^SystemExit", "sys.exit(), exit() and quit() end the whole program; a function ends with return")
ERRORS = (
    EXITS,
    (
        r"^UnboundLocalError",
        "that name has no value yet. Either an `if` skips the assignment, or an inner function assigns to the "
        "name and so makes it local: use another name there, or `nonlocal`",
    ),
    (r"^NameError: name '(torch|dist|nn|np)'", "the import is missing in your cell"),
    (r"^TypeError: (slice indices must be integers|'float' object cannot be interpreted)", WHOLE),
    (
        r"^TypeError: .* for \+: ('int' and 'tuple'|'tuple' and 'int')",
        "(n) is a number; (n,) is a tuple with one element",
    ),
    (
        r"^TypeError: .*('list_reverseiterator' object|not reversible)",
        "reversed() takes a list and returns an iterator: list(reversed(…)) is a list",
    ),
    (
        r"^TypeError: '[<>]' not supported between instances of '(\w+)' and '\1'",
        "sort and min compare the next entries of two tuples if the first ones are equal, and these have no "
        "order: pass a key= without them",
    ),
    (
        r"^TypeError: '[<>]=?' not supported .*'NoneType'",
        "None is compared with a number; math.inf is larger than every number",
    ),
    (
        r"^TypeError: '(tuple|torch.Size)' object is not callable",
        "a tuple is not a function: an index needs square brackets, x.shape[2], and between two tuples stands a comma",
    ),
)
