"""Lab 01, exercise 7: where to put the checkpoints."""


def place_checkpoints(layers, kept, inside):
    """The sizes of the segments to checkpoint, such as [4, 4, 4]: they add up to `layers`.

    The forward pass keeps of each segment its input, `kept` bytes, and throws away what its layers
    make of it. The backward pass goes from the last segment to the first and computes each again:
    then its layers' activations are there, `inside` bytes each, beside the segments' inputs.
    The sizes are those with the lowest peak, segments · kept + largest size · inside; of several
    with that peak, any with the fewest segments.
    """
    # 1. The peak for a number of segments, whose sizes are as equal as possible.
    # 2. The best number, from 1 to `layers`.
    # 3. Its sizes.
    ### BEGIN SOLUTION

    def peak(segments):
        return segments * kept + -(-layers // segments) * inside

    segments = min(range(1, layers + 1), key=peak)
    size, larger = divmod(layers, segments)
    return [size + 1] * larger + [size] * (segments - larger)
    ### END SOLUTION
