"""The traces of exercise 3. No µs and no ids are the same by chance; ids and correlations overlap, as they do."""

from labs_helpers.measure.written_trace import trace

CASES = {
    "three operations": trace("""
        op aten::relu 2+6 #1 > launch 4 =3 > kernel vectorized 7+5
        op aten::mm 10+9 #2 > launch 13 =1 > kernel gemm 17+21
        op aten::add 20+8 #3 > launch 22 =2 > kernel vectorized 38+11; wait 30+22 =4
    """),
    "operations that call others": trace("""
        op aten::linear 2+20 #1; op aten::t 3+4 #2
        op aten::mm 9+10 #3 > launch 12 =2 > kernel gemm 23+17
        op aten::contiguous 24+5 #4; op aten::linear 31+19 #5
        op aten::t 32+3 #6; op aten::mm 37+11 #7 > launch 40 =6 > kernel gemm 51+12
        op aten::contiguous 52+16 #8; op aten::copy_ 54+13 #9 > launch 58 =7 > kernel copy 69+8
        wait 70+11 =9
    """),
    "several kernels a call, calls without a kernel": trace("""
        op aten::sum 2+13 #1 > launch 4 =4 > kernel reduce_1 8+7; launch 9 #1 =5 > kernel reduce_2 15+3
        launch 11 #1 =6 > kernel reduce_2 18+4; op aten::sum 17+2 #2
        op aten::copy_ 21+3 #3; op aten::copy_ 25+10 #4 > launch 27 =7 > kernel copy 30+27
        op aten::copy_ 36+2 #5; op aten::sum 39+9 #6 > launch 41 =8 > kernel reduce_1 57+5; wait 50+15 =9
    """),
    "copies, memsets, streams and threads": trace("""
        op aten::copy_ 2+8 #11 > copy 4 =21 > memcpy 7+18 @15
        op aten::zero_ 12+5 #12 > set 13 =22 > memset 15+5
        op MmBackward0 14+22 #13 @2; op aten::mm 16+9 #14 @2 > launch 18 =23 @2; launch 20 #14 =24 @2
        kernel gemm 21+19 #14 =23; kernel splitk_reduce 28+10 #14 =24 @13
        op aten::mul 19+6 #15 > launch 22 =25 > kernel vectorized 30+4 @13
        op aten::mm 27+7 #16 @2 > launch 29 =26 @2 > kernel gemm 41+6; wait 40+11 =27
    """),
    "work of no operation": trace("""
        part forward 1+40 #1; shadow forward 6+40 #1
        op aten::mm 3+9 #2 > launch 5 =3 > kernel gemm 8+14; launch 16 =4 > kernel triton_kernel 23+6
        launch 19 #1 =2 > kernel own_kernel 30+9
        op aten::add 22+7 #3 > launch 24 =1 > kernel vectorized 40+5
        kernel from_before_the_trace 4+3 #99 =90; memset 47+2 #0 =91; wait 42+12 =5
    """),
    "listed in no order": trace("""
        kernel gemm 21+9 #3 =1; wait 26+25 =4; kernel vectorized 45+2 #1 =3; launch 13 #3 =1
        op aten::linear 8+14 #2; op aten::mm 10+11 #3
        op aten::add 3+4.5 #1; kernel vectorized 15+5.25 #1 =2; launch 5 #1 =2; launch 6 #1 =3
    """),
}
