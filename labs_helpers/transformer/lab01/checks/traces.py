"""The handmade traces of exercises 2 and 8."""

from labs_helpers.measure.written_trace import trace

# Exercise 2: every shortcut gives a different number.
GPU_TIME = {
    "two kernels": trace("""
        part step 4+33 #9; op aten::mm 3+23 #1 > launch 8+4 =1 > kernel gemm 12+13; launch 18+3 #1 =2
        > kernel splitk_reduce 28+3; wait 32+21 =3
    """),
    "copies, unordered": trace("""
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
    "two threads, unordered": trace("""
        wait 61.25+20.5 =8; kernel mul_backward 52.125+32.5 #5 =5
        kernel ncclDevKernel_AllReduce_Sum 36.5+22.25 #6 =6 @20
        op aten::mul 33+6 #5 @2 > launch 35.5 =5 @2; launch 37.75 #6 =6 @2; memset 7.5+0.625 #2 =1
        part step 1.5+80.75 #1; op aten::zeros 2+4 #2 > set 3 =1
        op aten::mm 7+9 #3 > launch 9 =2; launch 11 #3 =3; record 13 #3 =4
        kernel splitk_reduce 20.5+3.25 #3 =3; kernel gemm 10.125+10.375 #3 =2; shadow step 7.5+54.125 #1
        kernel gemm 40+4.5 #5 =7
    """),
}
# Exercise 8: parts whose GPU work runs later, on other streams, and several times.
DIAGNOSE = {
    "launched ahead": trace("""
        part router 2+10 #1; op aten::mm 3+6 #2 > launch 5 =1 > kernel gemm 8+9; shadow router 8+9 #1
        part experts 14+16 #3; op aten::mm 15+5 #4 > launch 17 =2 > kernel gemm 20+14
        shadow experts 20+37 #3; op aten::silu 21+4 #5 > launch 23 =3 > kernel silu 34+6
        op aten::mm 26+3 #6 > launch 27 =4 > kernel gemm 42+15
        part combine 32+9 #7; op aten::add 33+7 #8 > launch 36 =5 > kernel add 58+5; shadow combine 58+5 #7
        wait 43+22 =6
    """),
    "pauses between the pieces": trace("""
        part attention 2+13 #1; op aten::mm 3+5 #2 > launch 4 =1 > kernel gemm 6+30
        shadow attention 6+34 #1; op aten::softmax 9+5 #3 > launch 10 =2 > kernel softmax 36+4
        part mask 17+44 #4; op aten::eq 18+2 #5 > launch 19 =3; wait 21+24 =4; shadow mask 41+47 #4
        kernel compare 41+2 #5 =3; launch 47 =5; wait 49+6 =6; kernel triton_compact 50+3 =5
        op aten::index 56+4 #6 > launch 57 =7
        part linear 63+6 #7; op aten::mm 64+4 #8 > launch 65 =8
        op aten::mean 71+4 #9 > launch 72 =9; wait 76+30 =10; kernel index 82+6 #6 =7
        kernel gemm 89+7 #8 =8; shadow linear 89+7 #7; kernel mean 97+5 #9 =9
        shadow of_another_thread 97+5 #11
    """),
    "two streams, unordered": trace("""
        kernel gemm_2 22+10 =2 @13; kernel gemm_1 12+38 =1
        part experts 3+15 #1; kernel gemm_3 35+9 =3 @13; launch 5 =1; launch 8 =2; wait 48+28 =6
        launch 11 =3; shadow experts 12+38 #1; shadow experts 22+22 #1 @13
        part dense 20+7 #2
        part embedding 29+17 #3; kernel silu 66+4 =5; shadow dense 66+4 #2; launch 32 =7
        > kernel gather 71+2; shadow embedding 71+2 #3; launch 22 =4 > kernel gemm_4 46+6 @13
        shadow dense 46+6 #2 @13; launch 24 =5
    """),
    "parts that come again": trace("""
        part gate 2+4 #1; launch 4 =1 > kernel gemm 8+4; shadow gate 8+4 #1
        part mlp 9+8 #2; launch 11 =2 > kernel gemm 14+11; shadow mlp 14+14 #2; launch 14 =3
        > kernel silu 25+3
        part gate 19+5 #3; launch 21 =4 > kernel gemm 31+5; shadow gate 31+5 #3
        part mlp 26+6 #4; launch 28 =5
        part gate 34+4 #5; launch 36 =6; launch 37 =7; kernel gemm 40+13 =5; shadow mlp 40+13 #4
        wait 41+28 =8; kernel gemm 55+2 =6; shadow gate 55+8 #5; kernel softmax 57+6 =7
    """),
    "launches of another thread": trace("""
        part experts 2+20 #1; launch 4 =1 > kernel gemm 6+12; shadow experts 6+33 #1; launch 9 =2 @2
        launch 13 =3; kernel mm_backward 19+16 =2
        part combine 25+17 #3
        part loss 26+12 #2 @2; launch 28 =4; launch 30 =5 @2; launch 33 =6 @2; kernel silu 36+3 =3
        kernel add 40+7 =4; shadow combine 40+7 #3; wait 44+26 =7; kernel cross_entropy 48+10 =5
        shadow loss 48+16 #2; kernel sum 59+5 =6
    """),
    "copies, graphs, and what belongs to no part": trace("""
        launch 1 =1; kernel from_before_the_trace 2+0.5 =99; kernel before 3+4 =1
        part load 5+10 #1; op aten::copy_ 5.5+2 #9 > copy 6 =2; copy 8 =3; memcpy 9+14 #9 =2
        shadow load 9+23 #1; set 11 =10
        part views 17+3 #2
        part graph 21+12 #3; op aten::mul 22+3 #4 > launch 23 =4; memcpy 24+5 =3; graph 26 =5
        memset 30+2 =10; launch 30 =6; kernel mul 33+3 #4 =4; shadow graph 33+30 #3; launch 36 =7
        kernel gemm 37+8 =5; wait 39+34 =8; memset 45.5 =5 > kernel gelu 47+4 > kernel gemm_2 54+9
        kernel after 64+5 =7; shadow of_another_thread 64+5 #11
    """),
    "launches where parts meet": trace("""
        part load 2+8 #1; launch 2 =1 > kernel copy 4+5; shadow load 4+5 #1
        part mlp 10+9 #2; launch 10 =2 > kernel gemm 13+5 > kernel gemm_2 18+6
        shadow mlp 13+14 #2; launch 15 =3 > kernel silu 24+3; launch 19 =4 > kernel between 28+6
        part loss 23+7 #3; launch 27 =5 > kernel sum 35+4; wait 30+10 =6
    """),
    "half of its time": trace("""
        part norm 1+4 #1; launch 2 =1 > kernel norm 4+3; shadow norm 4+3 #1
        part mask 6+18 #2; launch 7 =2; wait 9+7 =3; kernel compare 10+5 =2; shadow mask 10+20 #2
        launch 22 =4 > kernel index 25+5; wait 24+7 =5
    """),
}
