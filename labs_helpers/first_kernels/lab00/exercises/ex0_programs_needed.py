"""Lab 00, exercise 0: how many programs it takes. One line, to see how an exercise works."""


def programs_needed(n, BLOCK):
    """The number of programs that cover n elements, BLOCK elements each; n and BLOCK ≥ 1.

    The last program may be partly idle.
    """
    ### BEGIN SOLUTION
    return (n + BLOCK - 1) // BLOCK
    ### END SOLUTION
