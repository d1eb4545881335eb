"""Lab 07, exercise 1: the shapes of attention's four linear layers on one rank."""


def trace_shapes(batch, length, width, mp_size):
    """Return {layer: (x, weight, out)}, the shapes on one of mp_size ranks.

    The layers are "fc_q", "fc_k" and "fc_v", split on the output dimension; "fc_o", split on the
    input dimension; and "fc_o, naive", split on the output dimension like the first three. Give x
    and out as the layer's product reads and writes them: for "fc_o, naive", x is already
    collected, and out is not collected yet. Each layer is out = x @ weight, and the weight of the
    unsplit layer is (width, width). x is (batch, length, features). mp_size divides width. A
    shape is a tuple of ints.
    """
    # 1. To compute its part of q, k and v, a rank uses all of x. Which part of the weight?
    # 2. fc_o takes attention's output. How wide is it on one rank? How many rows does fc_o's
    #    weight have then?
    # 3. Which x does the product need if the same layer is split on the output dimension?
    ### BEGIN SOLUTION
    part = width // mp_size
    whole, slice_ = (batch, length, width), (batch, length, part)
    shapes = dict.fromkeys(("fc_q", "fc_k", "fc_v", "fc_o, naive"), (whole, (width, part), slice_))
    shapes["fc_o"] = (slice_, (part, width), whole)
    return shapes
    ### END SOLUTION
