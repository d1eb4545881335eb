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
        "max, min, and, or, not, if, `in` and index() ask a tensor for one truth value; torch.maximum, torch.where, & "
        "and | (with brackets round each comparison) go element by element, and `is` or id() tell which tensor it is",
    ),
    (
        r"view size is not compatible",
        "a tensor may be a transposed or sliced view; reshape and flatten take one, view does not",
    ),
    (
        r"zero-dim.* tensor .*concatenated|Sizes of tensors must match|Tensors must have same number of dim",
        "torch.cat puts tensors of one dimension behind one another: reshape(-1) makes each of them so",
    ),
    (r"stack expects each tensor", "torch.stack takes tensors of one shape; torch.cat puts vectors behind one another"),
    (
        r"is invalid for input of size|expects split_sizes to sum",
        "reshape, view and split keep the number of elements: parts of numel() each add up to the whole, in one order",
    ),
    (
        r"leaf Variable that requires grad",
        "a parameter is written to while autograd watches: parameter.detach() or torch.no_grad()",
    ),
    (f"{GRAD_SIZE}|assigned grad has data of a different type", "a .grad has its parameter's shape, dtype and device"),
    (r"Expected self.dtype to be equal to src.dtype", "scatter takes both tensors in one dtype: .to(…) one of them"),
    (r"return_types", "t.max(-1) returns (values, indices); t.amax(-1) is the values alone"),
    (
        f"{NO_MATRIX}|must be a 3D tensor|1D tensors expected",
        "dot takes vectors, mm and addmm matrices, bmm three dimensions each; @ takes (batch, length, in) @ (in, out)",
    ),
    (
        r"only one element tensors can be converted to Python scalars",
        "math's functions, float() and int() take one number; torch has math's for whole tensors",
    ),
)
