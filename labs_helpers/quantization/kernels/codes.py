"""Turn a weight's stored codes into the numbers that tensor cores multiply, four bytes at a time.

Byte by byte, a GPU spends three times as many instructions on a weight, and then the arithmetic, not the memory,
decides the time of a product with few rows. The PTX puts bits in place; the arithmetic stays in Triton.
"""

import triton
import triton.language as tl

DENSE, INT8, INT4, FP8 = 0, 1, 2, 3  # the formats of a weight; kernels read copies of these


@triton.jit
def whole_numbers(codes, dtype: tl.constexpr):
    """Return codes from 0 to 15 plus `offset(dtype)`: set below the implicit bit of a number with units of 1 they need
    no conversion instruction."""
    if dtype == tl.bfloat16:
        return (codes.to(tl.int16) | 0x4300).to(tl.bfloat16, bitcast=True)
    elif dtype == tl.float16:
        return (codes.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True)
    else:
        return codes.to(dtype)


@triton.jit
def both_codes(pairs, dtype: tl.constexpr, PTX: tl.constexpr):
    """Return `whole_numbers` of the lower and of the upper four bits of bytes.

    Four bytes at a time in PTX: eight instructions for eight codes, where byte arithmetic takes three times as many.
    """
    if PTX and dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, c, d;
            prmt.b32 a, $4, 0, 0x4140;
            prmt.b32 b, $4, 0, 0x4342;
            lop3.b32 $0, a, 0x000f000f, 0x43004300, 0xea;
            lop3.b32 $1, b, 0x000f000f, 0x43004300, 0xea;
            shr.u32 c, a, 4;
            shr.u32 d, b, 4;
            lop3.b32 $2, c, 0x000f000f, 0x43004300, 0xea;
            lop3.b32 $3, d, 0x000f000f, 0x43004300, 0xea;
            }""",
            "=r,=r,=r,=r,r",
            [pairs],
            dtype=(tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=4,
        )
    else:
        return whole_numbers(pairs & 15, dtype), whole_numbers(pairs >> 4, dtype)


@triton.jit
def offset(dtype: tl.constexpr):
    return 128.0 if dtype == tl.bfloat16 else (1024.0 if dtype == tl.float16 else 0.0)


@triton.jit
def float8_numbers(codes, dtype: tl.constexpr, PTX: tl.constexpr):
    """Return the values of e4m3 codes in bytes. For bfloat16: the bits one place further in, times the difference of
    the exponents' biases, 2¹²⁰, because the GPU converts float8 to float16 alone. The code of NaN becomes 480."""
    if PTX and dtype == tl.bfloat16:
        shifted = tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, c, d;
            prmt.b32 a, $2, 0, 0x1404;
            prmt.b32 b, $2, 0, 0x3424;
            shr.u32 c, a, 4;
            shr.u32 d, b, 4;
            lop3.b32 c, c, 0x07f007f0, 0, 0xc0;
            lop3.b32 d, d, 0x07f007f0, 0, 0xc0;
            lop3.b32 $0, a, 0x80008000, c, 0xea;
            lop3.b32 $1, b, 0x80008000, d, 0xea;
            }""",
            "=r,=r,r",
            [codes],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=4,
        )
        return shifted * (2.0**120)
    else:
        return codes.to(tl.float8e4nv, bitcast=True).to(dtype)
