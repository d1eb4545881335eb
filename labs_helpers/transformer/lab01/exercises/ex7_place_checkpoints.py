"""Lab 01, exercise 7: choose where to put the checkpoints."""


def place_checkpoints(layers, kept, inside):
    """Return the sizes of the segments to checkpoint, such as [4, 4, 4]; they add up to `layers`.

    The forward pass keeps each segment's input, `kept` bytes, and discards its layers' activations.
    The backward pass goes from the last segment to the first and recomputes each one. Memory then
    holds its layers' activations, `inside` bytes each, and all segments' inputs. Minimize this
    peak, segments · kept + largest size · inside. If several choices reach the minimum, return any
    with the fewest segments.
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
