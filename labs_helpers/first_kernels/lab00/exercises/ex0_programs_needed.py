"""Lab 00, exercise 0: count the programs of a launch. One line, to see how an exercise works."""


def programs_needed(n, BLOCK):
    """Return the number of programs that cover n elements if each covers BLOCK; n and BLOCK ≥ 1.

    The last program may be partly idle.
    """
    ### BEGIN SOLUTION
    return (n + BLOCK - 1) // BLOCK
    ### END SOLUTION
