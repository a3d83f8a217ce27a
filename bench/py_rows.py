"""What a program in Python pays for a call, by one library; prints a line of figures as the peers do.

    py_rows.py LIBRARY WORKLOAD MODE       LIBRARY is gradus, tf, jax or torch; MODE as in peer_LIBRARY.py
"""
import os
import statistics
import sys
import time

LIBRARY, WORKLOAD, MODE = sys.argv[1:4]
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def imported():
    """The library, with the NumPy that it brings along; seconds and megabytes afterwards."""
    start = time.perf_counter()
    if LIBRARY == "gradus":
        import gradus.tensorflow as library
    elif LIBRARY == "tf":
        import tensorflow as library
    elif LIBRARY == "jax":
        import jax.numpy as library
    else:
        import torch as library
        import numpy  # noqa: F401  PyTorch loads it when it is first asked for
    return library, time.perf_counter() - start, resident_bytes() / 2**20


LIB, IMPORT_S, MEMORY_MB = imported()
import peer_protocol  # noqa: E402
from peer_protocol import MIN_S, np  # noqa: E402


def micro(call, calls):
    """Microseconds of a call: the median of batches of calls, after one batch."""
    for _ in range(calls):
        call()
    peer_protocol.quiet()
    times, end = [], time.perf_counter() + MIN_S
    while len(times) < 15 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def square(value):
    """A tensor of 4x4."""
    array = np.full((4, 4), value, np.float32)
    return LIB.from_numpy(array) if LIBRARY == "torch" else LIB.asarray(array) if LIBRARY == "jax" else LIB.constant(array)


def host(x):
    return np.asarray(x) if LIBRARY == "jax" else x.numpy()


def py_import():
    return {"median_us": IMPORT_S * 1e6, "extra": {"memory_mb": MEMORY_MB}}


def py_op():
    a, b = square(0.5), square(0.25)
    return {"median_us": micro(lambda: a + b, 1000),
            "extra": {"numpy_us": micro(lambda: host(a + b), 500), "sum": float(host(a + b).sum())}}


def py_chain():
    a, b = square(0.5), square(0.25)

    def chain():
        x = a
        for _ in range(10):
            x = x * b + a
        return host(x)
    return {"median_us": micro(chain, 50), "extra": {"sum": float(chain().sum())}}


def py_function():
    def two_ops(x, y):
        return x * y + x
    if LIBRARY == "jax":
        import jax
        f = jax.jit(two_ops)
    elif LIBRARY == "torch":
        f = LIB.compile(two_ops)
    else:
        f = LIB.function(two_ops, jit_compile=MODE == "xla")
    a, b = square(0.5), square(0.25)
    start = time.perf_counter()
    host(f(a, b))
    first = time.perf_counter() - start
    return {"median_us": micro(lambda: host(f(a, b)), 200), "first_call_s": first, "extra": {"sum": float(host(f(a, b)).sum())}}


# ---------------------------------------------------------------- a generator of Python as data

ELEMENTS, BATCH = 3200, 64


def elements():
    images = np.random.default_rng(0).integers(0, 256, (256, 28, 28), dtype=np.uint8)
    for k in range(ELEMENTS):
        yield images[k % 256], k % 10


def batches():
    """One pass: batches of images and labels as tensors of the library."""
    if LIBRARY == "torch":
        class Elements(LIB.utils.data.IterableDataset):
            def __iter__(self):
                return elements()
        return LIB.utils.data.DataLoader(Elements(), batch_size=BATCH)
    if LIBRARY == "jax":
        return stacked()
    signature = (LIB.TensorSpec((28, 28), LIB.uint8), LIB.TensorSpec((), LIB.int64))
    return LIB.data.Dataset.from_generator(elements, output_signature=signature).batch(BATCH).prefetch(2)


def stacked():
    """By hand, since JAX has no data sets."""
    images, labels = [], []
    for image, label in elements():
        images.append(image)
        labels.append(label)
        if len(images) == BATCH:
            yield LIB.asarray(np.stack(images)), LIB.asarray(np.array(labels))
            images, labels = [], []


def py_generator():
    data = None if LIBRARY == "jax" else batches()
    times, labels = [], 0
    for _ in range(6):
        start = time.perf_counter()
        labels = sum(int(y.shape[0]) for _, y in (batches() if data is None else data))
        times.append(time.perf_counter() - start)
    return {"median_us": statistics.median(times[1:]) / ELEMENTS * BATCH * 1e6, "first_call_s": times[0],
            "extra": {"sum": labels}}


# ---------------------------------------------------------------- training: of the peers by their own scripts, peer_*.py

def network():
    from gradus import nn
    model = nn.Sequential([nn.Dense(128, "relu"), nn.Dense(10)])
    model(np.zeros((1, 784), np.float32))
    for variable, weight in zip(model.trainable_variables, peer_protocol.mlp_weights((784, 128, 10))):
        variable.assign(weight)
    return model, nn.Adam(1e-3), nn.SparseCategoricalCrossentropy(from_logits=True)


def py_mlp_step():
    model, optimizer, loss_function = network()
    x, y = map(LIB.constant, peer_protocol.cls_data((64, 784), 10))

    @LIB.function
    def step(x, y):
        with LIB.GradientTape() as tape:
            loss = loss_function(y, model(x, training=True))
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables))
        return loss
    return peer_protocol.timed(lambda: step(x, y), float)


def py_fit():
    model, optimizer, loss_function = network()
    images, labels, test_images, test_labels = peer_protocol.fmnist()

    def normalized(x, y):
        return (LIB.cast(x, LIB.float32) * (1 / 255.0) - peer_protocol.MEAN) * (1 / peer_protocol.STD), y
    data = LIB.data.Dataset.from_tensor_slices((images.reshape(-1, 784), labels.astype(np.int64)))
    data = data.shuffle(60000).batch(64).map(normalized).prefetch(2)
    model.compile(optimizer, loss_function, metrics=["accuracy"])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.fit(data, epochs=1, verbose=False)
        times.append(time.perf_counter() - start)
    scores = model(LIB.constant(peer_protocol.norm_np(test_images).reshape(-1, 784))).numpy()
    return {"median_us": statistics.median(times[1:]) * 1e6, "first_call_s": times[0],
            "extra": {"test_acc": float((scores.argmax(axis=1) == test_labels).mean())}}


def main():
    peer_protocol.use_threads(LIBRARY, THREADS)
    rows = {row.__name__: row for row in (py_import, py_op, py_chain, py_function, py_generator, py_mlp_step, py_fit)}
    peer_protocol.emit(LIBRARY, MODE, WORKLOAD, IMPORT_S, rows[WORKLOAD]())


if __name__ == "__main__":
    main()
