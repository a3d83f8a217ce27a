"""What a program of Keras 3 takes by one backend; prints a line of figures as the peers do.

    keras_rows.py BACKEND WORKLOAD ...   BACKEND is gradus, jax, tensorflow, torch or numpy

All backends begin with the same weights and read the same rows in the same order; a step is a part of `fit` on arrays.
"""
import os
import statistics
import sys
import time

BACKEND, WORKLOAD = sys.argv[1:3]
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
os.environ["KERAS_BACKEND"] = BACKEND
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def imported():
    """Keras on the backend, and seconds."""
    start = time.perf_counter()
    if BACKEND == "gradus":
        import gradus.keras as library
    else:
        import keras as library
    return library, time.perf_counter() - start


keras, IMPORT_S = imported()
import peer_protocol  # noqa: E402
from peer_protocol import MIN_S, np  # noqa: E402

layers = keras.layers


# ---------------------------------------------------------------- models: inputs, outputs, how many batches of how many rows

def mlp():
    x = keras.Input((784,))
    return x, layers.Dense(10)(layers.Dense(128, activation="relu")(x)), 100, 64


def cnn():
    x = keras.Input((28, 28, 1))
    y = layers.MaxPooling2D()(layers.Conv2D(32, 3, activation="relu", padding="same")(x))
    y = layers.MaxPooling2D()(layers.Conv2D(64, 3, activation="relu", padding="same")(y))
    return x, layers.Dense(10)(layers.Flatten()(y)), 20, 64


def lstm():
    x = keras.Input((128, 32))
    return x, layers.Dense(10)(layers.LSTM(64)(x)), 20, 32


class Embedded(layers.Layer):
    """Tokens and their places."""

    def __init__(self, tokens, places, width):
        super().__init__()
        self.tokens, self.places = layers.Embedding(tokens, width), layers.Embedding(places, width)
        self.count = places

    def call(self, x):
        return self.tokens(x) + self.places(keras.ops.arange(self.count))


def transformer():
    x = keras.Input((128,), dtype="int32")
    y = Embedded(8192, 128, 64)(x)
    for _ in range(2):
        y = layers.LayerNormalization()(y + layers.MultiHeadAttention(4, 16)(y, y))
        y = layers.LayerNormalization()(y + layers.Dense(64)(layers.Dense(256, activation="relu")(y)))
    return x, layers.Dense(10)(layers.GlobalAveragePooling1D()(y)), 20, 32


def rows_of(spec, rows):
    """Random rows of an input, and labels."""
    rng = np.random.default_rng(0)
    shape = (rows, *spec.shape[1:])
    x = rng.integers(0, 8192, shape).astype(np.int32) if spec.dtype == "int32" else rng.random(shape, dtype=np.float32)
    return x, rng.integers(0, 10, rows).astype(np.int64)


def compiled(make):
    """The model with the weights that all backends begin with, and its rows."""
    inputs, outputs, batches, batch = make()
    model = keras.Model(inputs, outputs)
    rng = np.random.default_rng(1)
    model.set_weights([(rng.standard_normal(w.shape) / max(1, w.shape[0]) ** 0.5).astype(np.float32) if w.ndim > 1 else w
                       for w in model.get_weights()])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), metrics=["accuracy"],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, rows_of(inputs, batches * batch), batches, batch


def fit_row(make):
    """Microseconds of a step of fit; the first call runs one batch, and the loss is that of the epoch after it."""
    model, (x, y), batches, batch = compiled(make)

    def fit(rows):
        return model.fit(x[:rows], y[:rows], batch_size=batch, epochs=1, shuffle=False, verbose=0).history["loss"][0]
    start = time.perf_counter()
    fit(batch)
    first = time.perf_counter() - start
    loss = fit(len(x))
    peer_protocol.quiet()
    times, end = [], time.perf_counter() + MIN_S
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        fit(len(x))
        times.append((time.perf_counter() - start) / batches * 1e6)
    return {"median_us": statistics.median(times), "first_call_s": first, "extra": {"sum": float(loss)}}


def predict_row():
    """Microseconds of predict of one row."""
    model, (x, _), _, _ = compiled(mlp)
    row = x[:1]
    start = time.perf_counter()
    sum_of_row = float(np.abs(model.predict(row, verbose=0)).sum())
    first = time.perf_counter() - start
    times, end = [], time.perf_counter() + MIN_S
    while len(times) < 30 or time.perf_counter() < end:
        start = time.perf_counter()
        model.predict(row, verbose=0)
        times.append((time.perf_counter() - start) * 1e6)
    return {"median_us": statistics.median(times), "first_call_s": first, "extra": {"sum": sum_of_row}}


def epoch_row():
    """Seconds of an epoch over Fashion-MNIST, as `fit` of the programs in C++."""
    images, labels, test_images, test_labels = peer_protocol.fmnist()
    x, test = (peer_protocol.norm_np(each).reshape(-1, 784) for each in (images, test_images))
    keras.utils.set_random_seed(1)
    model, _, _, _ = compiled(mlp)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.fit(x, labels.astype(np.int64), batch_size=64, epochs=1, verbose=0)
        times.append(time.perf_counter() - start)
    accuracy = model.evaluate(test, test_labels.astype(np.int64), batch_size=1000, verbose=0)[1]
    return {"median_us": statistics.median(times[1:]) * 1e6, "first_call_s": times[0], "extra": {"test_acc": float(accuracy)}}


ROWS = {
    "keras_import": lambda: {"median_us": IMPORT_S * 1e6},
    "keras_mlp": lambda: fit_row(mlp),
    "keras_cnn": lambda: fit_row(cnn),
    "keras_lstm": lambda: fit_row(lstm),
    "keras_transformer": lambda: fit_row(transformer),
    "keras_predict": predict_row,
    "keras_epoch": epoch_row,
}


def main():
    peer_protocol.use_threads(BACKEND, THREADS)
    peer_protocol.emit(BACKEND, "", WORKLOAD, IMPORT_S, ROWS[WORKLOAD]())


if __name__ == "__main__":
    main()
