"""The traces of exercise 2, in which every shortcut gives another number."""

from labs_helpers.measure.written_trace import trace

CASES = {
    "two kernels": trace("""
        op aten::mm 3+23 #1 > launch 8+4 =1 > kernel gemm 12+13; launch 18+3 #1 =2
        > kernel splitk_reduce 28+3; wait 32+21 =3
    """),
    "copies, listed in no order": trace("""
        wait 66.5 =8
        part step 3+66 #1; kernel elementwise 52+11 #4 =6; kernel elementwise 31+7 #3 =4
        op aten::copy_ 5+9 #2 > copy 6 =1; copy 8 #2 =2; set 10 #2 =3; memcpy 11+13 #2 =1; memcpy 24+2 #2 =2
        memset 27+4 #2 =3; op aten::add 16+8 #3 > graph 18 =4 > kernel elementwise 39+5
        op aten::mul 25+12 #4; op aten::view 39+2 #5; launch 28 #4 =5; launch 32 #4 =6; wait 38+28 =7
        kernel elementwise 46+2 #4 =5
    """),
    "two streams": trace("""
        op aten::mm 2+30 #1 > launch 4 =1; launch 6 #1 =2; launch 8 #1 =3; kernel gemm 10+30 #1 =1
        launch 12 #1 =4; launch 14 #1 =5; kernel add 15+6 #1 =2 @13; launch 16 #1 =6; wait 35+39 =7
        kernel mul 31+16 #1 =3 @13; kernel norm 47+5 #1 =4; kernel norm 60+8 #1 =5
        kernel norm 60+8 #1 =6 @13
    """),
    "ranges over the GPU": trace("""
        part forward 4+31 #1; op aten::mm 5+20 #2 > launch 7 =1 > kernel gemm 12+17; shadow forward 12+31 #1
        op aten::add 27+7 #3 > launch 29 =2 > kernel add 37+6
        op aten::mul 36+5 #4 > launch 38 =3; wait 45+9 =4; wait 54.5+8.5 =5; kernel mul 55+5 #4 =3
    """),
    "communication": trace("""
        op aten::mm 2+9 #1 > launch 4 =1 > kernel gemm 8+26
        op nccl:all_reduce 12+7 #2 > launch 13 =2 > kernel pack_for_nccl 14+12 @13; launch 16 #2 =3
        op aten::copy_ 22+6 #3 > copy 23 =5; kernel ncclDevKernel_AllReduce 26+41 #2 =3 @20
        shadow nccl:all_reduce 26+41 #2 @20; kernel add 28+7 #4 =4 @13
        op aten::add 30+5 #4 > launch 31 =4; launch 38 #5 =6; launch 40 #5 =7; launch 42 #6 =8
        wait 45+58 =10; memcpy 46+5 #3 =5 @15; kernel ncclDevKernel_AllGather 68+8 #5 =6 @20
        kernel ncclDevKernel_Broadcast 72+11 #5 =7 @21; kernel gemm 80+10 #6 =8
        kernel ncclDevKernel_AllReduce 84+4 #6 =9 @20; kernel pack_for_nccl 93+3 #6 =11 @13
    """),
    "nothing but communication": trace("""
        op nccl:all_reduce 2+9 #1 > launch 4 =1 > kernel ncclDevKernel_AllReduce_Sum 9+12 @20; wait 12+14 =2
    """),
    "nothing on the GPU": trace("""
        op aten::view 2+9 #1; wait 12+14 =1
    """),
    "two threads, in no order": trace("""
        wait 61.25+20.5 =8; kernel mul_backward 52.125+32.5 #5 =5
        kernel ncclDevKernel_AllReduce_Sum 36.5+22.25 #6 =6 @20
        op aten::mul 33+6 #5 @2 > launch 35.5 =5 @2; launch 37.75 #6 =6 @2; memset 7.5+0.625 #2 =1
        part step 1.5+80.75 #1; op aten::zeros 2+4 #2 > set 3 =1
        op aten::mm 7+9 #3 > launch 9 =2; launch 11 #3 =3; record 13 #3 =4
        kernel splitk_reduce 20.5+3.25 #3 =3; kernel gemm 10.125+10.375 #3 =2; shadow step 7.5+54.125 #1
        kernel gemm 40+4.5 #5 =7
    """),
}
