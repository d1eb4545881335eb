"""Exercise 7 of lab 11: mistakes that its check has to name, and right answers written differently."""

NAME = "decision_rules"
RETURN = "    return rules\n"
LEAK = '        ("leak", [("growth", ">", 0.005)]),\n'
PRINTING = '        ("printing", [("lines printed", ">", 0.8), ("waits", ">", 4)]),\n'
VALUES = '        ("waiting for values", [("waits", ">", 4)]),\n'

BUGS: list = [
    (NAME, "no list", [(RETURN, "    return dict(rules)\n")], "instead of a list of rules"),
    (NAME, "unknown finding", [('"growth"', '"grow"')], "there is no finding 'grow'; did you mean 'growth'"),
    (NAME, "unknown cause", [('("leak"', '("memory leak"')], "there is no cause 'memory leak'"),
    (NAME, "unknown sign", [('"growth", ">"', '"growth", ">="')], "there is no sign '>='"),
    (NAME, "a bound as text", [('"growth", ">", 0.005', '"growth", ">", "0.005"')], "the bound of 'growth' is '0.005'"),
    (NAME, "one condition", [('[("growth", ">", 0.005)]', '("growth", ">", 0.005)')], r"one condition needs a list"),
    (NAME, "a triple", [(LEAK, '        ("leak", "growth", ">"),\n')], r"is no pair \(cause, conditions\)"),
    (
        NAME,
        "values before printing",
        [(PRINTING + VALUES, VALUES + PRINTING)],
        r"print_every_step, sick(.|\n)*\(waiting for values\) holds(.|\n)*\(printing\) holds too, but comes after",
    ),
    (NAME, "no rule for leaks", [(LEAK, "")], "leak, sick(.|\n)*no rule has the cause 'leak'"),
    (NAME, "a bound out of reach", [("0.005", "5")], r"\(leak\) does not hold:\s+growth is 0\.\d+, not > 5"),
    (
        NAME,
        "a healthy job is ill",
        [('"headroom", "<", 0)', '"headroom", "<", 0.1)')],
        r"full_memory(.|\n)*headroom is 0\.0\d+ < 0.1",
    ),
    (NAME, "a rule without conditions", [('[("growth", ">", 0.005)]', "[]")], "it has no condition"),
    (
        NAME,
        "one machine's numbers",
        [('"spread of FLOPs", ">", 1.5', '"spread of work", ">", 1.0')],
        r"\(straggler\) holds:\s+spread\s+of\s+work\s+is",
    ),
]
DIFFERENT: list = [
    (NAME, [(RETURN, "    return tuple((cause, tuple(conditions)) for cause, conditions in rules)\n")]),
    (NAME, [(RETURN, "    from labs_helpers.clinic.rules import REFERENCE\n\n    return list(REFERENCE)\n")]),
    (NAME, [("rules += [", "rules = rules + [")]),
]
