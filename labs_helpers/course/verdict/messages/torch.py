"""Error messages of PyTorch's tensors and of autograd."""

SIZES_DIFFER = r"(The size of tensor a \(\d+\) must match|must match the existing size)"
INNER_SIZES = r"mat1 and mat2 shapes cannot be multiplied|Expected size for first two dimensions|inner dimension"
NO_MATRIX = r"must be a matrix"
INDEX_DTYPE = r"xpected dtype int(32/int)?64 for index|indices must be long|type LongTensor"
INDEX_OUTSIDE = r"index -?\d+ is out of bounds|index out of range in self"
GRAD_DTYPE = r"assign a gradient with dtype"
GRAD_SIZE = r"assign a gradient of size|assigned grad has data of a different size"
ERRORS = (
    (
        r"Boolean value of Tensor",
        "max, min, and, or, not, if, `in` and index() need one truth value, and a tensor has many. "
        "torch.maximum, torch.where, & and | (with parentheses around each comparison) work element by element; "
        "compare identities with `is` or id()",
    ),
    (
        r"view size is not compatible",
        "a tensor may be a transposed or sliced view: reshape and flatten accept it, view does not",
    ),
    (
        r"zero-dim.* tensor .*concatenated|Sizes of tensors must match|Tensors must have same number of dim",
        "torch.cat joins tensors with the same number of dimensions: reshape(-1) makes each of them a vector",
    ),
    (
        r"stack expects each tensor",
        "torch.stack takes tensors of one shape; torch.cat joins vectors of different lengths",
    ),
    (
        r"is invalid for input of size|expects split_sizes to sum",
        "reshape, view and split keep the number of elements: the numel() of the parts must add up to that of "
        "the whole",
    ),
    (
        r"leaf Variable that requires grad",
        "the code writes to a parameter while autograd records: use parameter.detach() or torch.no_grad()",
    ),
    (
        f"{GRAD_SIZE}|assigned grad has data of a different type",
        ".grad must have its parameter's shape, dtype and device",
    ),
    (
        r"Expected self.dtype to be equal to src.dtype",
        "scatter needs both tensors in one dtype: convert one of them with .to(…)",
    ),
    (r"return_types", "t.max(-1) returns (values, indices); t.amax(-1) returns the values only"),
    (
        f"{NO_MATRIX}|must be a 3D tensor|1D tensors expected",
        "dot takes vectors, mm and addmm take matrices, bmm takes tensors with three dimensions; @ also takes "
        "(batch, length, in) @ (in, out)",
    ),
    (
        r"only one element tensors can be converted to Python scalars",
        "functions of math, float() and int() take one number; for whole tensors use the functions of torch",
    ),
)
