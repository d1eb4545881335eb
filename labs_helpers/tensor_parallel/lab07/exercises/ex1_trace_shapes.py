"""Lab 07, exercise 1: what one rank holds of attention's four linear layers, and what goes in and out."""


def trace_shapes(batch, length, width, mp_size):
    """{layer: (x, weight, out)}: the shapes on one of mp_size ranks.

    The layers: "fc_q", "fc_k", "fc_v", whose weights are split on the output dimension; "fc_o",
    split on the input dimension; and "fc_o, naive", split on the output dimension as the first
    three, with x as its product takes it (already collected) and out as its product gives it (not
    collected yet). Each layer is out = x @ weight, of a (width, width) matrix as a whole. x is
    (batch, length, features). mp_size divides width. A shape is a tuple of ints.
    """
    # 1. What a rank computes of q, k and v: all rows of x, and which part of the columns?
    # 2. fc_o takes what attention made of them. How wide is that on one rank? How high is fc_o's
    #    weight then?
    # 3. The same layer split on the output dimension: what does its product need?
    ### BEGIN SOLUTION
    part = width // mp_size
    whole, slice_ = (batch, length, width), (batch, length, part)
    shapes = dict.fromkeys(("fc_q", "fc_k", "fc_v", "fc_o, naive"), (whole, (width, part), slice_))
    shapes["fc_o"] = (slice_, (part, width), whole)
    return shapes
    ### END SOLUTION
