"""Test traces: which profiler events are kept, what replaces kernels on a CPU, and the functions that read them."""

import gzip
import json
from decimal import Decimal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import record_function

from labs_helpers.measure import trace, written_trace
from labs_helpers.measure.kernel_kinds import KINDS, kind_of, kinds
from labs_helpers.measure.machine import has_gpu

on_a_cpu = pytest.mark.skipif(has_gpu(), reason="on a GPU kernels stand for themselves")


def some_work():
    x = torch.ones(16, 8)
    with record_function("product"):
        y = x.T @ x
    return (y.view(64)[:4].softmax(0) + 1).sum()


@pytest.fixture(scope="module")
def recorded():
    return trace.record(some_work)


def of(events, category):
    return [event for event in events if event["cat"] == category]


def test_events_have_what_is_read_and_nothing_else(recorded):
    assert {event["cat"] for event in recorded.events} <= {*trace.GPU_WORK, "cpu_op", "cuda_runtime", "user_annotation"}
    for event in recorded.events:
        assert event.keys() == {"ph", "cat", "name", "ts", "dur", "tid", "args"} and event["ph"] == "X"
        assert event["args"].keys() <= {"External id", "Input Dims", "Input type", "stream", "correlation"}
        assert event["ts"] == round(event["ts"], 3) >= 0 <= event["dur"]
    starts = [event["ts"] for event in recorded.events]
    assert starts == sorted(starts) and starts[0] == 0
    ids = [event["args"]["External id"] for event in of(recorded.events, "cpu_op")]
    assert len(set(ids)) == len(ids) > 0
    (product,) = (event for event in recorded.events if event["name"] == "aten::mm" and event["cat"] == "cpu_op")
    assert product["args"]["Input Dims"] == [[8, 16], [16, 8]] and product["args"]["Input type"][0] == "float"
    assert [event["name"] for event in of(recorded.events, "user_annotation")] == ["product"]
    assert recorded.on["torch"] == torch.__version__


def test_the_call_is_recorded_once_and_warmed_up():
    calls = []
    events = trace.record(lambda: calls.append(torch.ones(3).sigmoid()), warmup=2).events
    assert len(calls) == 3
    assert [event["name"] for event in of(events, "cpu_op")].count("aten::sigmoid") == 1
    with pytest.raises(ValueError, match="warmup is 0"):
        trace.record(some_work, warmup=0)


@on_a_cpu
def test_on_a_cpu_the_operators_that_work_are_kernels(recorded):
    kernels, calls = of(recorded.events, "kernel"), of(recorded.events, "cuda_runtime")
    names = [kernel["name"] for kernel in kernels]
    # No view, no allocation, no operator made of others, and none of what aten::sum calls.
    assert names == ["aten::fill_", "aten::mm", "aten::_softmax", "aten::add", "aten::sum"]
    operators = {event["args"]["External id"]: event for event in of(recorded.events, "cpu_op")}
    for kernel, call in zip(kernels, calls, strict=True):
        operator = operators[kernel["args"]["External id"]]
        assert [kernel[key] for key in ("name", "ts", "dur")] == [operator[key] for key in ("name", "ts", "dur")]
        assert kernel["args"]["stream"] == 0 and call["ts"] == kernel["ts"] and call["dur"] == 0
        assert call["args"].items() <= kernel["args"].items()
    assert len({call["args"]["correlation"] for call in calls}) == len(calls)
    for kernel, following in zip(kernels, kernels[1:], strict=False):
        assert kernel["ts"] + kernel["dur"] <= following["ts"]


@on_a_cpu
def test_an_operator_made_of_others_is_no_kernel():
    layer = torch.nn.Linear(8, 8, bias=False)

    def step():
        layer(torch.ones(2, 8, requires_grad=True)).pow(2).sum().backward()

    names = {event["name"] for event in of(trace.record(step).events, "kernel")}
    assert {"aten::mm", "aten::pow", "aten::sum"} <= names, names
    assert not any("Backward" in name or "autograd" in name or name == "aten::linear" for name in names)


def written(cat, name, ts, dur=1.0, **args):
    """An event as kineto writes it, with keys and arguments that are not read."""
    args |= {"device": 0, "Ev Idx": 7, "warps per SM": 12.0}
    times = {"ts": Decimal(4452065736702031 + ts) / 1000, "dur": Decimal(str(dur))}
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, **times, "args": args}


def test_what_kineto_writes_on_a_gpu_is_reduced():
    file = [
        {"ph": "M", "name": "process_name", "ts": Decimal(1), "pid": 0, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x", "ts": 0, "dur": 9},
        {"ph": "s", "id": 200, "pid": 1, "tid": 1, "ts": Decimal(1), "cat": "ac2g", "name": "ac2g"},
        written("user_annotation", "ProfilerStep#1", 0, 99),
        written("overhead", "Buffer Flush", 0, 99),
        written("python_function", "torch/nn/modules/module.py(1): _call_impl", 0, 99),
        written("kernel", "nvjet_tst_320x128_64x3_1x2_h_bz_coopB_NNT", 9001, 35.171, stream=7, correlation=5)
        | {"args": {"External id": 3, "stream": 7, "correlation": 5, "grid": [2, 39, 1]}},
        written("cuda_driver", "cuLaunchKernelEx", 3000, correlation=5),
        written("cuda_runtime", "cudaStreamIsCapturing", 2500, correlation=4),
        written("cpu_op", "aten::mm", 2000, 4.5) | {"args": {"External id": 3, "Input Strides": [[1]]}},
        written("cpu_op", "an operator without its id", 2000),
        written("gpu_user_annotation", "forward", 9000, 36),
        written("cuda_runtime", "cudaDeviceSynchronize", 40000, 6, correlation=6),
    ]
    kept = trace.reduced(file)
    assert [(e["cat"], e["ts"], e["dur"]) for e in kept] == [
        ("cpu_op", 0, 4.5),
        ("cuda_runtime", 1.0, 1.0),
        ("gpu_user_annotation", 7.0, 36.0),
        ("kernel", 7.001, 35.171),
        ("cuda_runtime", 38.0, 6.0),
    ]
    assert kept[3]["args"] == {"External id": 3, "stream": 7, "correlation": 5} and kept[0]["args"] == {
        "External id": 3
    }
    json.dumps(kept)
    assert trace.reduced([]) == []


def test_a_trace_is_saved_and_loaded_and_always_the_same_bytes(recorded, tmp_path):
    first, second = tmp_path / "a" / "1.json.gz", tmp_path / "2.json.gz"
    trace.save(first, recorded)
    trace.save(second, recorded)
    assert trace.load(first) == recorded and first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "empty", "list", "other keys"])
def test_a_damaged_file_is_said_to_be_damaged(recorded, tmp_path, damage):
    path = tmp_path / "t.json.gz"
    trace.save(path, recorded)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:middle],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
            "text": b"hello",
            "empty": b"",
            "list": gzip.compress(b"[1]"),
            "other keys": gzip.compress(b"{}"),
        }[damage]
    )
    with pytest.raises(ValueError, match=r"t\.json\.gz is damaged"):
        trace.load(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        trace.load(tmp_path / "t.json.gz")


events = st.lists(
    st.builds(
        lambda cat, ts, dur: {"ph": "X", "cat": cat, "name": "k", "ts": float(ts), "dur": float(dur), "args": {}},
        st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "gpu_user_annotation", "cuda_runtime"]),
        st.integers(0, 40),
        st.integers(0, 9),
    ),
    max_size=9,
)


@given(events)
def test_busy_and_launches_agree_with_counting_microseconds(some):
    working = [event for event in some if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    covered = {t for e in working for t in range(int(e["ts"]), int(e["ts"] + e["dur"]))}
    span = max((e["ts"] + e["dur"] for e in some), default=0) - min((e["ts"] for e in some), default=0)
    assert trace.busy(some) == pytest.approx(len(covered) / span if span else 0)
    assert trace.launches(some) == sum(event["cat"] == "kernel" for event in some)


REAL_NAMES = {
    "matrix products": [
        "nvjet_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nt_align1>(T1::Params)",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x6_tn",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(cublasLt::cublasSplitKParams<float>)",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false>(float)",
        "triton_tem_fused_mm_3",
        "aten::mm",
        "aten::bmm",
        "aten::addmm",
        "mkldnn::_linear_pointwise",
    ],
    "attention": [
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>(Flash_fwd_params)",
        "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, 128, 128, 8>>(Flash_bwd_params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
        "triton_tem_fused_flex_attention_0",
        "attention_forward_kernel",
        "hopper_backward_kernel",
        "key_value_gradients_kernel",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array>",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor>>",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::masked_fill_kernel>",
        "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(c10::Scalar)>(int)",
        "void at::native::triu_tril_kernel<bool, int, true, 1, false>(at::cuda::detail::TensorInfo<bool, int>)",
        "triton_poi_fused__to_copy_add_mul_silu_7",
        "aten::mul",
        "aten::silu_backward",
        "aten::where",
        "aten::normal_",
    ],
    "norms, softmax, sums": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float>>>",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float>(float*)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*)",
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*)",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2",
        "triton_per_fused__softmax_copy_0",
        "aten::_softmax",
        "aten::_log_softmax_backward_data",
        "aten::sum",
        "aten::mean",
    ],
    "optimizer": [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>",
        "triton_for_fused_0",
        "aten::_fused_adamw_",
        "aten::_foreach_mul_",
    ],
    "copies": [
        "Memcpy DtoD (Device -> Device)",
        "Memcpy HtoD (Pageable -> Device)",
        "Memset (Device)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
        "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#11}>>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::OpaqueType<8>>",
        "aten::copy_",
        "aten::cat",
    ],
    "communication": ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"],
    "other": [
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int>",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel>>",
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::Policy900, false>",
        "my_own_kernel",
    ],
}


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, names in REAL_NAMES.items() for name in names])
def test_kinds_of_real_kernels(kind, name):
    assert kind_of(name) == kind


def test_every_kind_has_a_name_and_the_operator_decides_where_the_kernel_says_nothing():
    assert set(REAL_NAMES) == set(KINDS)
    assert kind_of("my_own_kernel", "aten::mm") == "matrix products"
    assert kind_of("void at::native::reduce_kernel<4>", "aten::mm") == "norms, softmax, sums"


def test_what_an_optimizer_launches_is_the_optimizers():
    x = torch.ones(4, 4, requires_grad=True)
    optimizer = torch.optim.AdamW([x], lr=0.1)

    def step():
        (x @ x).sum().backward()
        optimizer.step()

    events = trace.record(step).events
    by_kind = trace.by_kind(events)
    assert list(by_kind.values()) == sorted(by_kind.values(), reverse=True)
    assert sum(by_kind.values()) == pytest.approx(sum(e["dur"] for e in events if e["cat"] in trace.GPU_WORK))
    (optimizing,) = (e for e in of(events, "user_annotation") if e["name"].startswith("Optimizer.step"))
    if not has_gpu():
        for event, kind in kinds(events):
            inside = optimizing["ts"] <= event["ts"] < optimizing["ts"] + optimizing["dur"]
            assert (kind == "optimizer") == inside


def test_work_is_added_up_by_the_operation_that_launched_it():
    events = written_trace.trace("""
        op aten::linear 2+20 #1; op aten::mm 4+9 #3 > launch 6 =2 > kernel gemm 23+17; launch 9 #3 =4 @2
        kernel splitk_reduce 25+3 #3 =4 @13; op aten::mm 30+5 #4 > launch 31 =5 > kernel gemm 41+6
        op aten::zero_ 36+5 #5 > set 37 =6 > memset 48+4; launch 39 =9 > kernel of_no_operation 53+6
        kernel of_another_trace 60+2 #99 =7
    """)
    found = [(one["name"], us) for one, us in trace.operations(events)]
    assert found == [("aten::mm", 20), ("aten::mm", 6), ("aten::zero_", 4)]
    assert list(trace.by_operation(events).items()) == [("aten::mm", (2, 26)), ("aten::zero_", (1, 4))]
