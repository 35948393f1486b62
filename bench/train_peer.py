"""One run of a peer for bench/train.py: a case in torch or TensorFlow, timed step by step.

    PYTHON bench/train_peer.py torch|tensorflow '{"model": …, "batch": …, …}'

Prints one JSON object: seconds of each measured step, peak memory, page faults, versions. Pictures and
labels are random and the same in every step, as in `weir bench train`.
"""
import json
import os
import resource
import sys
import time


def timed(step, case, barrier=lambda: None):
    for _ in range(case["warmup"]):
        step()
    barrier()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    seconds = []
    for _ in range(case["steps"]):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    with open("/proc/self/status", encoding="ascii") as status:
        peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return {"times": seconds, "page_faults_per_step": faults / case["steps"], "peak_rss_bytes": peak_kib * 1024}


# ---- torch -------------------------------------------------------------------------------------

def torch_model(name, torch):
    nn = torch.nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (1, 28, 28), 10
    if name == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
            nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(512, 10)), (1, 28, 28), 10
    try:
        import torchvision.models as zoo
    except ImportError:
        import peer_networks
        if name not in peer_networks.NETWORKS:
            sys.exit(f"{name} needs torchvision, which is not there")
        return peer_networks.NETWORKS[name](), (3, 224, 224), 1000
    if name == "inception3":
        return zoo.inception_v3(aux_logits=False, init_weights=False), (3, 299, 299), 1000
    return getattr(zoo, name)(), (3, 224, 224), 1000


def torch_rank(rank, case, where, results):
    """One of several processes, each with its batch: DistributedDataParallel over gloo, or each for itself."""
    import torch
    torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=case["workers"])
    out = torch_train(case, lambda: torch.distributed.barrier())
    if rank == 0:
        results.put(out)
    torch.distributed.destroy_process_group()


def torch_group(case):
    import tempfile
    import torch
    with tempfile.TemporaryDirectory() as folder:
        context = torch.multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        torch.multiprocessing.spawn(torch_rank, (case, f"file://{folder}/meet", results), nprocs=case["workers"])
        return results.get()


def torch_run(case):
    return torch_group(case) if case["workers"] > 1 else torch_train(case, lambda: None)


def blas_of_process():
    """Which file gives this process its matrix products, if it is not torch itself."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        return next((os.path.realpath(line.split()[-1]) for line in maps if "libblas" in line), None)


def torch_train(case, barrier):
    import contextlib
    import torch
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    net, shape, n_classes = torch_model(case["model"], torch)
    is_half, is_image = case["bf16"], shape[0] == 3
    layout = torch.channels_last if is_image else torch.contiguous_format
    x = (2 * torch.rand(case["batch"], *shape) - 1).contiguous(memory_format=layout)
    y = torch.randint(n_classes, (case["batch"],))
    net = net.to(memory_format=layout)
    if case["forward_only"]:
        net.eval()
        if is_half:
            net, x = net.to(torch.bfloat16), x.to(torch.bfloat16)
        with torch.no_grad():
            net = (torch.compile(net) if case.get("compile") else
                   torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(net, x))))

        def step():
            with torch.no_grad():
                net(x)
    else:
        if case["workers"] > 1 and not case["independent"]:
            net = torch.nn.parallel.DistributedDataParallel(net)
        loss_of = torch.nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9, weight_decay=4e-5)
        if case.get("compile"):
            net = torch.compile(net)
        cast = (lambda: torch.autocast("cpu", dtype=torch.bfloat16)) if is_half else contextlib.nullcontext

        def step():
            optimizer.zero_grad(set_to_none=True)
            with cast():
                loss = loss_of(net(x), y)
            loss.backward()
            optimizer.step()
    try:
        import torchvision
        vision = torchvision.__version__
    except ImportError:
        vision = None
    return dict(timed(step, case, barrier), versions={"torch": torch.__version__, "torchvision": vision,
                                                      "blas": blas_of_process()})


# ---- TensorFlow --------------------------------------------------------------------------------

def tensorflow_model(name, tf):
    layers, nets = tf.keras.layers, tf.keras.applications
    if name == "mlp":
        return tf.keras.Sequential([layers.Flatten(), layers.Dense(128, "relu"), layers.Dense(10)]), (28, 28, 1), 10
    if name == "lenet":
        return tf.keras.Sequential([
            layers.Conv2D(32, 5, padding="same", activation="relu"), layers.MaxPool2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"), layers.MaxPool2D(), layers.Flatten(),
            layers.Dense(512, "relu"), layers.Dropout(0.5), layers.Dense(10)]), (28, 28, 1), 10
    # Keras' ResNets have the stride in the first 1x1 (v1), a few percent fewer FLOP than torchvision's.
    make = {"resnet50": nets.ResNet50, "resnet152": nets.ResNet152, "inception3": nets.InceptionV3, "vgg16": nets.VGG16}
    side = 299 if name == "inception3" else 224
    return make[name](weights=None, classifier_activation=None), (side, side, 3), 1000


def tensorflow_run(case):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(case["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if case["bf16"]:
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    net, shape, n_classes = tensorflow_model(case["model"], tf)
    x = tf.random.uniform((case["batch"], *shape), -1, 1)
    y = tf.random.uniform((case["batch"],), 0, n_classes, tf.int32)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.005, momentum=0.9)
    net(x)

    @tf.function
    def infer():
        return net(x, training=False)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = loss_of(y, tf.cast(net(x, training=True), tf.float32))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))
        return loss

    step = infer if case["forward_only"] else train
    return dict(timed(lambda: step().numpy(), case), versions={"tensorflow": tf.__version__})


if __name__ == "__main__":
    run = {"torch": torch_run, "tensorflow": tensorflow_run}[sys.argv[1]]
    print(json.dumps(run(json.loads(sys.argv[2]))))
