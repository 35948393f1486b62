#!/usr/bin/python3
"""PyTorch on a GPU, at its best, for bench/gpu.py: the same models as nn-bench, from torchvision.

    bench/gpu_peer.py [--seconds 300] [--variants graph,compile] [--run-seconds 1] CASE ...

A case is MODEL:PRECISION:BATCH, a training (resnet50:bf16:64), MODEL:PRECISION:inferBATCH, passes queued one after the
other, infer1 for one picture whose answer is awaited (resnet50:bf16:infer1), or "peak": matrix products and a copy, what
the GPU can do at all. Precisions: bf16 and fp16 are autocast, fp16 with a GradScaler, for inference weights of that type; tf32 and
f32 are tensors in f32.

Training: channels last, cuDNN's benchmark, fused SGD with momentum, one batch that stays on the GPU. Variants:

    graph    the whole step, with the optimiser's, recorded as a CUDA graph; step by step where that fails
    compile  the same of the model compiled by torch.compile

Inference: "graph" has batch norms folded into convolutions and is recorded; "jit" is optimized by TorchScript; "compile" by
torch.compile with frozen weights.

Each case runs in a process of its own, which is ended at its share of --seconds. Prints a JSON object a line as soon as it
is known; where a variant fails, its "error". Ends with 77 where there is no torch or no GPU.
"""
import argparse
import gc
import importlib.util
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time

N_CLASSES, N_WARMUP, N_TRIAL, RUN_STEPS, N_RUNS = 1000, 11, 3, 10, 5
LEARNING_RATE, MOMENTUM = 0.001, 0.9
CASE_SECONDS_MIN = 30


def emit(record):
    print(json.dumps(record), flush=True)


# ---- timing ----------------------------------------------------------------------------------------------------

def timed(torch, step, n):
    """Seconds of n steps, queued one after the other."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(n):
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def n_steps_of(torch, step, run_seconds):
    seconds = timed(torch, step, N_TRIAL)
    return max(RUN_STEPS, min(1000000, int(run_seconds * N_TRIAL / seconds) + 1))


def throughput(torch, step, batch, run_seconds):
    n = n_steps_of(torch, step, run_seconds)
    seconds = [timed(torch, step, n) for _ in range(N_RUNS)]
    median = statistics.median(seconds)
    return {"steps": n, "images_per_s": batch * n / median, "step_ms": 1e3 * median / n,
            "spread": (max(seconds) - min(seconds)) / median}


def latency(torch, step, run_seconds):
    n = n_steps_of(torch, step, run_seconds)
    seconds = sorted(timed(torch, step, 1) for _ in range(N_RUNS * n))
    median = statistics.median(seconds)
    return {"steps": n, "step_ms": 1e3 * median, "p99_ms": 1e3 * seconds[math.ceil(0.99 * len(seconds)) - 1],
            "images_per_s": 1 / median}


def memory_of(torch):
    return {"memory_bytes": torch.cuda.max_memory_allocated(), "memory_reserved_bytes": torch.cuda.max_memory_reserved()}


def forget_peak(torch):
    """What cuDNN tried out to find its algorithms is not what a training needs."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


# ---- models ----------------------------------------------------------------------------------------------------

def model_of(torch, name):
    import torchvision.models as zoo
    with torch.device("cuda"):
        if name in ("inception3", "inception_v3"):
            net = zoo.inception_v3(weights=None, aux_logits=False, init_weights=False)
        else:
            net = getattr(zoo, name)(weights=None)
    return net.to(memory_format=torch.channels_last)


def batch_of(torch, name, batch, device="cuda"):
    side = 299 if name.startswith("inception") else 224
    x = 2 * torch.rand(batch, 3, side, side, device=device) - 1
    return x.contiguous(memory_format=torch.channels_last), torch.randint(N_CLASSES, (batch,), device=device)


def dtype_of(torch, precision):
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)


def set_precision(torch, precision):
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = precision != "f32"
    torch.backends.cudnn.allow_tf32 = precision != "f32"


def warmed_up(torch, body):
    """What the first call returned. On a stream of its own, as a recording wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        first = body().clone()
        for _ in range(N_WARMUP - 1):
            body()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    return first


def recorded(torch, make_body):
    """(step, first, last): what replays the body as a CUDA graph, what its first call returned, and what each replay writes."""
    body, prepare = make_body()
    first = warmed_up(torch, body)
    prepare()
    forget_peak(torch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        last = body()

    def step():
        graph.replay()
    step.body = body  # its tensors must live as long as the recording
    return step, first, last


def plain(torch, make_body):
    """The same step by step: `last` is None, since each step returns it."""
    body, _ = make_body()
    first = warmed_up(torch, body)
    forget_peak(torch)
    return body, first, None


def recorded_or_plain(torch, make_body, record):
    """make_body: a new body, and what is to be done before it is recorded. A failed recording may leave a body unusable."""
    try:
        out = recorded(torch, make_body)
        record["is_recorded"] = True
        return out
    except Exception as error:  # whatever it is, there is another way
        record.update(is_recorded=False, record_error=text_of(error))
    forget_peak(torch)
    return plain(torch, make_body)


# ---- training --------------------------------------------------------------------------------------------------

def optimizer_of(torch, net):
    try:
        return torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, foreach=True)


def training_body(torch, case, is_compiled):
    name, precision, batch = case
    torch.manual_seed(1)
    net = model_of(torch, name).train()
    optimizer = optimizer_of(torch, net)
    x, y = batch_of(torch, name, batch)
    run = torch.compile(net) if is_compiled else net
    loss_of = torch.nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")
    dtype = dtype_of(torch, precision)

    def body():
        optimizer.zero_grad(set_to_none=True)
        # A graph may not read casts that were made before it; each weight is cast once a step anyway.
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32, cache_enabled=False):
            loss = loss_of(run(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return body, lambda: optimizer.zero_grad(set_to_none=True)


def train(torch, case, variant, run_seconds, record):
    step, first, last = recorded_or_plain(torch, lambda: training_body(torch, case, variant == "compile"), record)
    record.update(throughput(torch, step, case[2], run_seconds))
    record.update(memory_of(torch))
    result = step()
    record.update(loss_first=number(first), loss_last=number(result if last is None else last))


# ---- inference -------------------------------------------------------------------------------------------------

def jit_model(torch, net, x):
    with torch.no_grad():
        return torch.jit.optimize_for_inference(torch.jit.trace(net, x))


def inference_model(torch, name, precision, variant, x):
    net = model_of(torch, name).eval()
    dtype = dtype_of(torch, precision)
    if variant == "graph":
        import torch.fx.experimental.optimization as fx
        return fx.fuse(net).to(dtype).to(memory_format=torch.channels_last)
    net = net.to(dtype)
    if variant == "jit":
        return jit_model(torch, net, x)
    import torch._inductor.config
    torch._inductor.config.freezing = True
    return torch.compile(net)


def inference_body(torch, case, variant):
    """One pass over a batch that stays on the GPU."""
    name, precision, batch = case
    torch.manual_seed(1)
    x, _ = batch_of(torch, name, batch)
    x = x.to(dtype_of(torch, precision))
    net = inference_model(torch, name, precision, variant, x)

    def body():
        with torch.no_grad():
            return net(x)
    return body, lambda: None


def latency_body(torch, case, variant, has_copies):
    """One picture from memory of the processor, in f32 as nn-bench has it, and its answer back to there."""
    name, precision, _ = case
    torch.manual_seed(1)
    picture = batch_of(torch, name, 1, "cpu")[0].pin_memory()
    answer = torch.empty(1, N_CLASSES).pin_memory()
    staged = batch_of(torch, name, 1)[0]
    dtype = dtype_of(torch, precision)
    net = inference_model(torch, name, precision, variant, staged.to(dtype))

    def upload():
        staged.copy_(picture, non_blocking=True)

    def download(result):
        answer.copy_(result, non_blocking=True)

    def body():
        with torch.no_grad():
            if has_copies:
                upload()
            result = net(staged.to(dtype)).float()
            if has_copies:
                download(result)
            return result
    return body, upload, download


def latency_step(torch, case, variant, record):
    """The copies are recorded too; where that fails they are made around what is."""
    try:
        step, _, _ = recorded(torch, lambda: (latency_body(torch, case, variant, True)[0], lambda: None))
        record["is_recorded"] = True
        return step
    except Exception as error:  # whatever it is, there is another way
        record["copies_error"] = text_of(error)
    forget_peak(torch)
    copies = []

    def make_body():
        body, *copies[:] = latency_body(torch, case, variant, False)
        return body, lambda: None

    inner, _, last = recorded_or_plain(torch, make_body, record)

    def step():
        copies[0]()
        result = inner()
        copies[1](result if last is None else last)
    return step


def infer(torch, case, variant, run_seconds, record):
    if case[2] == 1:
        step = latency_step(torch, case, variant, record)
        record.update(latency(torch, step, run_seconds))
    else:
        step, _, _ = recorded_or_plain(torch, lambda: inference_body(torch, case, variant), record)
        record.update(throughput(torch, step, case[2], run_seconds))
    record.update(memory_of(torch))


# ---- what the GPU can do ---------------------------------------------------------------------------------------

def product_rate(torch, dtype):
    """FLOP/s of products of two 8192 x 8192 matrices: the best of five runs, and their median."""
    n, n_products = 8192, 20
    a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty(n, n, device="cuda", dtype=dtype)
    timed(torch, lambda: torch.matmul(a, b, out=out), 3)
    seconds = [timed(torch, lambda: torch.matmul(a, b, out=out), n_products) / n_products for _ in range(N_RUNS)]
    return 2 * n ** 3 / min(seconds), 2 * n ** 3 / statistics.median(seconds)


def copy_rate(torch):
    """Bytes read and written a second by a copy within the GPU's memory."""
    a, b = (torch.empty(1 << 30, device="cuda", dtype=torch.float32).fill_(1) for _ in range(2))
    timed(torch, lambda: b.copy_(a), 3)
    return 2 * a.nbytes / min(timed(torch, lambda: b.copy_(a), 10) / 10 for _ in range(N_RUNS))


def driver():
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.SubprocessError):
        return None


def peak(torch, record):
    import torchvision
    record.update(gpu=torch.cuda.get_device_name(0), torch=torch.__version__, torchvision=torchvision.__version__,
                  cudnn=torch.backends.cudnn.version(), cuda=torch.version.cuda, driver=driver(),
                  python=sys.version.split()[0])
    set_precision(torch, "tf32")
    record["bf16_flop_per_s"], record["bf16_flop_per_s_median"] = product_rate(torch, torch.bfloat16)
    record["tf32_flop_per_s"], record["tf32_flop_per_s_median"] = product_rate(torch, torch.float32)
    record["copy_bytes_per_s"] = copy_rate(torch)


# ---- cases -----------------------------------------------------------------------------------------------------

def text_of(error):
    return f"{type(error).__name__}: {error}"[:600]


def number(tensor):
    """JSON has no NaN."""
    value = tensor.item()
    return value if math.isfinite(value) else None


def case_of(text):
    """(model, precision, batch), and whether it is inference."""
    name, precision, batch = text.split(":")
    if precision not in ("bf16", "fp16", "tf32", "f32"):
        raise ValueError(f"{text}: the precision is bf16, fp16, tf32 or f32")
    return (name, precision, int(batch.removeprefix("infer"))), batch.startswith("infer")


def variants_of(text, wanted):
    known = ["graph", "jit", "compile"] if text != "peak" and case_of(text)[1] else ["graph", "compile"]
    return [variant for variant in known if variant in wanted]


def measure(torch, text, variant, run_seconds):
    record = {"program": "torch", "case": text, "variant": variant}
    begin = time.perf_counter()
    try:
        case, is_inference = case_of(text)
        set_precision(torch, case[1])
        (infer if is_inference else train)(torch, case, variant, run_seconds, record)
    except Exception as error:  # a variant that fails must not take the others with it
        record["error"] = text_of(error)
    record["took_s"] = round(time.perf_counter() - begin, 2)
    emit(record)


def run_here(options, text):
    """One case in this process."""
    import torch
    if not torch.cuda.is_available():
        sys.exit(77)
    if text == "peak":
        record = {"program": "torch", "case": "peak"}
        try:
            peak(torch, record)
        except Exception as error:  # what was measured before is printed
            record["error"] = text_of(error)
        emit(record)
        return
    for variant in variants_of(text, options.variants):
        measure(torch, text, variant, options.run_seconds)
        forget_peak(torch)


def share_of(left_s, n_left):
    """Seconds for the next case: half as much again as an even share, since the first ones matter most."""
    return min(left_s, max(CASE_SECONDS_MIN, 1.5 * left_s / n_left))


def run_apart(options, text, limit_s):
    """One case in a process of its own, whose lines go straight to ours. torch.compile starts others: all are ended."""
    command = [sys.executable, __file__, "--here", "--variants", ",".join(options.variants),
               "--run-seconds", str(options.run_seconds), text]
    child = subprocess.Popen(command, start_new_session=True)
    try:
        return child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        emit({"program": "torch", "case": text, "error": f"ended after {limit_s:.0f} s; lines before this one count"})
        return None
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def run_all(options):
    end = time.monotonic() + options.seconds
    for i, text in enumerate(options.cases):
        left = end - time.monotonic()
        if left < 1:
            emit({"program": "torch", "case": text, "error": "no time was left"})
            continue
        code = run_apart(options, text, share_of(left, len(options.cases) - i))
        if code == 77:
            sys.exit(77)
        if code:
            emit({"program": "torch", "case": text, "error": f"ended with {code}"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="CASE")
    parser.add_argument("--seconds", type=float, default=300, help="for all cases")
    parser.add_argument("--run-seconds", type=float, default=1, help="of one of the five runs")
    parser.add_argument("--variants", default="graph,jit,compile", type=lambda text: text.split(","))
    parser.add_argument("--here", action="store_true", help="in this process, without a time limit")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    for text in options.cases:
        if text != "peak":
            try:
                case_of(text)
            except ValueError as error:
                parser.error(str(error))
    if not all(importlib.util.find_spec(name) for name in ("torch", "torchvision")):
        print("gpu_peer: torch or torchvision is not installed", file=sys.stderr)
        sys.exit(77)
    if options.here:
        for text in options.cases:
            run_here(options, text)
    else:
        run_all(options)


if __name__ == "__main__":
    main()
