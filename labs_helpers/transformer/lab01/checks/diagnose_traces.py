"""The traces of exercise 8: parts whose GPU work runs later than they do, on other streams, and again."""

from labs_helpers.measure.written_trace import trace

CASES = {
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
    "two streams, listed in no order": trace("""
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
    "half of its time": trace("""
        part norm 1+4 #1; launch 2 =1 > kernel norm 4+3; shadow norm 4+3 #1
        part mask 6+18 #2; launch 7 =2; wait 9+7 =3; kernel compare 10+5 =2; shadow mask 10+20 #2
        launch 22 =4 > kernel index 25+5; wait 24+7 =5
    """),
}
