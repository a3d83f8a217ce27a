"""fit on several devices and in several processes: the bits of any number of replicas are the same, and losses, metrics and
weights are those of one device."""
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "gradus")
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus.tensorflow as tf  # noqa: E402
import keras  # noqa: E402
from keras import layers, ops  # noqa: E402

RNG = np.random.default_rng(7)
X = RNG.normal(size=(50, 6)).astype("float32")
Y = RNG.integers(0, 3, 50)
WEIGHTS = RNG.uniform(0.5, 2, 50).astype("float32")


def net(extra=()):
    return keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu", kernel_regularizer="l2"), *extra,
                             layers.Dense(3, "softmax")])


def compiled(model, **options):
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), "sparse_categorical_crossentropy",
                  metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)], **options)
    return model


def trained(make=net, **options):
    """History, predictions and weights of a short fit, with a batch that is no multiple of the replicas."""
    keras.utils.set_random_seed(4)
    model = compiled(make())
    history = model.fit(X, Y, sample_weight=WEIGHTS, batch_size=16, epochs=2, verbose=0, validation_data=(X[:21], Y[:21]),
                        **options)
    return {**{name: np.array(values) for name, values in history.history.items()},
            "predicted": model.predict(X[:13], verbose=0), **{f"weight {i}": np.asarray(w) for i, w in
                                                              enumerate(model.weights)}}


def distributed(count, make=net, **options):
    with keras.distribution.DataParallel(devices=[f"cpu:{i}" for i in range(count)], auto_shard_dataset=False).scope():
        return trained(make, **options)


class Devices(unittest.TestCase):
    def alike(self, a, b):
        self.assertEqual(list(a), list(b))
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], name)

    def near(self, a, b, rtol=1e-4):
        for name in b:
            np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=1e-5, err_msg=name)

    def test_bits_do_not_depend_on_the_number_of_replicas_and_numbers_are_those_of_one_device(self):
        one = trained()
        first = distributed(1)
        self.near(first, one)
        for count in (2, 3, 8):
            self.alike(distributed(count), first)

    def test_dropout_draws_for_each_row_and_statistics_are_means(self):
        def make():
            return net([layers.BatchNormalization(), layers.Dropout(0.3)])
        first = distributed(1, make)
        self.alike(distributed(2, make), first)
        with keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"]).scope():
            model = keras.Sequential([keras.Input((400,)), layers.Dropout(0.5)])

            class Dropped(keras.Model):
                def call(self, x):
                    return model(x, training=True)
            dropped = Dropped().predict(np.ones((16, 400), "float32"), verbose=0) > 0
        self.assertEqual(len({row.tobytes() for row in dropped}), 16, "each row has a mask of its own")

    def test_synchronized_statistics_are_those_of_the_whole_batch(self):
        def trained_with(synchronized, count=None, policy="float32"):
            keras.utils.set_random_seed(4)
            keras.config.set_dtype_policy(policy)
            model = net([layers.BatchNormalization(momentum=0.8, synchronized=synchronized), layers.Activation("tanh"), layers.Dense(4),
                         layers.BatchNormalization(synchronized=synchronized)])
            keras.config.set_dtype_policy("float32")
            model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy")
            devices = [f"cpu:{i}" for i in range(count or 1)]
            with keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False).scope() if count else contextlib.nullcontext():
                history = model.fit(X, Y, batch_size=18, epochs=2, shuffle=False, verbose=0).history["loss"]
                return {"loss": np.array(history), "predicted": model.predict(X[:13], verbose=0),
                        **{str(i): np.asarray(w) for i, w in enumerate(model.weights)}}
        one = trained_with(False)
        self.alike(trained_with(True), one)
        first = trained_with(True, 1)
        self.near(first, one)
        for count in (2, 3):
            self.alike(trained_with(True, count), first)
        self.assertGreater(np.abs(trained_with(False, 1)["loss"] - one["loss"]).max(), 1e-3, "statistics of shards are others")
        want = trained_with(True, policy="mixed_bfloat16")["loss"]
        self.near(trained_with(True, 2, "mixed_bfloat16"), {"loss": want}, rtol=0.05)
        again = layers.BatchNormalization.from_config(layers.BatchNormalization(synchronized=True).get_config())
        self.assertTrue(again.synchronized)

    def test_activity_regularizers_masks_and_added_losses_are_those_of_the_batch(self):
        def make():
            words = keras.Input((6,))
            x = layers.Masking(0.0)(layers.Reshape((6, 1))(words))
            x = layers.LSTM(4, activity_regularizer=keras.regularizers.L2(0.1))(x)
            return keras.Model(words, layers.Dense(3, "softmax")(x))
        one = trained(make)
        first = distributed(1, make)
        self.near(first, one)
        self.alike(distributed(2, make), first)

    def test_every_kind_of_data_and_callbacks_of_batches(self):
        seen = []
        callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(logs["loss"]))
        a, b = distributed(2, callbacks=[callback]), distributed(2)
        self.alike(a, b)
        self.assertEqual(len(seen), 8)

        def batches():
            for i in range(0, 48, 16):
                yield X[i:i + 16], Y[i:i + 16]
        with keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"]).scope():
            model = compiled(net())
            model.fit(batches(), verbose=0)
            self.assertEqual(model.evaluate(batches(), verbose=0, return_dict=True).keys(),
                             model.evaluate(X[:48], Y[:48], batch_size=16, verbose=0, return_dict=True).keys())
            self.assertEqual(len(model.train_on_batch(X[:2], Y[:2])), 3, "fewer rows than shards")
            self.assertEqual(model.predict_on_batch(X[:5]).shape, (5, 3))

    def test_scope_of_a_strategy(self):
        found = []
        for count in (1, 2):
            strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(count)], micro_shards=4)
            keras.utils.set_random_seed(4)
            with strategy.scope():
                model = compiled(net())
            history = model.fit(X, Y, batch_size=16, epochs=2, verbose=0)  # outside of the scope, as on TensorFlow
            found.append([*history.history["loss"], *[np.asarray(w) for w in model.weights]])
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_train_step_of_ones_own(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = layers.Dense(1, kernel_initializer="ones")

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum((self(x)[:, 0] - tf.cast(y, "float32")) ** 2) / 16
                gradients = tape.gradient(loss, [v._value for v in self.trainable_variables])
                self.optimizer.apply(gradients, self.trainable_variables)
                return {"sum": loss}

            def predict_step(self, data):
                return {"doubled": 2 * self(data[0] if isinstance(data, tuple) else data)}
        weights = []
        for count in (1, 2, 4):
            with keras.distribution.DataParallel(devices=[f"cpu:{i}" for i in range(count)]).scope():
                model = Own()
                model.compile(keras.optimizers.SGD(0.01))
                model.fit(X[:48], Y[:48], batch_size=16, shuffle=False, verbose=0)
                weights.append(np.asarray(model.dense.kernel))
                found = model.predict(X[:13], verbose=0)["doubled"]
                np.testing.assert_allclose(found, 2 * (X[:13] @ weights[-1] + np.asarray(model.dense.bias)), rtol=1e-5, atol=1e-5)
        for other in weights[1:]:
            np.testing.assert_array_equal(weights[0], other)

    def test_losses_and_metrics_of_a_models_own_methods_are_those_of_the_batch(self):
        class ByComputeLoss(keras.Model):
            def train_step(self, data):
                x, y, weights = data
                with tf.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = self.compute_loss(x, y, y_pred, weights)
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
                for metric in self.metrics:
                    if metric.name == "loss":
                        metric.update_state(loss)
                    elif metric.name not in ("mean_inside", "largest", "of_losses"):
                        metric.update_state(y, y_pred)
                return {**self.get_metrics_result(), "loss": loss}

        class ByLossObject(ByComputeLoss):
            def train_step(self, data):
                x, y, weights = data
                with tf.GradientTape() as tape:
                    y_pred = self(x, training=True)
                    loss = keras.losses.SparseCategoricalCrossentropy()(ops.concatenate([y, y], 0), ops.concatenate([y_pred, y_pred], 0))
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
                return {**self.compute_metrics(x, y, y_pred, weights), "loss": loss}

        class LossOfInputs(keras.Model):
            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
                return super().compute_loss(x, y, y_pred, sample_weight) + ops.mean(ops.square(x[:, :3] - y_pred))

            def compute_metrics(self, x, y, y_pred, sample_weight=None):
                found = super().compute_metrics(x, y, y_pred, sample_weight)
                return {**found, "product": ops.mean(x[:, :3] * y_pred)}

        class Measured(layers.Layer):
            def __init__(self):
                super().__init__()
                self.mean = keras.metrics.Mean(name="mean_inside")

            def call(self, x):
                self.mean.update_state(ops.mean(x, -1))
                self.add_loss(keras.losses.MeanSquaredError()(ops.zeros_like(x), x))
                return x

        def trained_as(kind, count):
            keras.utils.set_random_seed(4)
            inner = net([Measured()])
            model = kind(inner.inputs, inner.outputs)
            model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy",
                          metrics=[keras.metrics.SparseCategoricalAccuracy(name="share"), keras.metrics.SparseTopKCategoricalAccuracy(2)])
            devices = [f"cpu:{i}" for i in range(count or 1)]
            with keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False).scope() if count else contextlib.nullcontext():
                history = model.fit(X, Y, sample_weight=WEIGHTS, batch_size=25, epochs=2, shuffle=False, verbose=0).history
                return {**{name: np.array(values) for name, values in history.items()},
                        **{str(i): np.asarray(w) for i, w in enumerate(model.trainable_weights)}}

        class Largest(keras.metrics.Metric):
            """The largest value of all that were given since the last reset."""

            def __init__(self):
                super().__init__(name="largest")
                self.seen = self.add_variable((), "zeros", name="seen")

            def update_state(self, values):
                self.seen.assign(ops.maximum(self.seen, ops.max(values)))

            def result(self):
                return self.seen

        class ResetInside(ByComputeLoss):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                self.largest, self.of_losses = Largest(), keras.metrics.Mean(name="of_losses")

            def train_step(self, data):
                self.largest.reset_state()
                found = super().train_step(data)
                self.of_losses.update_state(found["loss"])
                self.largest.update_state(data[0])
                return {**found, "largest": self.largest.result(), "of_losses": self.of_losses.result()}

        for kind in (ByComputeLoss, ByLossObject, LossOfInputs, ResetInside):
            with self.subTest(kind.__name__):
                one, first = trained_as(kind, None), trained_as(kind, 1)
                self.near(first, one)
                self.alike(trained_as(kind, 3), first)

    def test_refusals(self):
        self.assertIn("cpu:0", keras.distribution.list_devices("cpu"))
        mesh = keras.distribution.DeviceMesh((1, 2), ["batch", "model"], ["cpu:0", "cpu:1"])
        layout = keras.distribution.LayoutMap(mesh)
        with keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch").scope():
            with self.assertRaisesRegex(NotImplementedError, "DataParallel"):
                compiled(net()).fit(X, Y, verbose=0)
        with keras.distribution.DataParallel(devices=["cpu:0", "cpu:0"]).scope():
            with self.assertRaises(ValueError):
                compiled(net()).fit(X, Y, verbose=0)
        with self.assertRaisesRegex(ValueError, "one for each process"):
            keras.distribution.initialize("localhost:1,localhost:2", 3, 0)
        with self.assertRaisesRegex(ValueError, "from 0 to 1"):
            keras.distribution.initialize("localhost:1,localhost:2", 2, 5)


# A process of several: the same training as distributed(1).
PROGRAM = """
import sys, os
sys.path.insert(0, sys.argv[1])
import replicas_test as t
import numpy as np, keras
if sys.argv[3] == "initialize":
    keras.distribution.initialize(sys.argv[4], 2, int(sys.argv[5]))
with keras.distribution.DataParallel(auto_shard_dataset=False).scope():
    found = t.trained()
np.savez(sys.argv[2], **{f"{i:02d}": found[name] for i, name in enumerate(found)})
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Processes(unittest.TestCase):
    def run_two(self, how):
        here = os.path.dirname(os.path.abspath(__file__))
        addresses = [f"localhost:{port}" for port in free_ports(2)]
        with tempfile.TemporaryDirectory() as folder:
            files, processes = [], []
            for rank in range(2):
                files.append(f"{folder}/{rank}.npz")
                environment = dict(os.environ)
                if how == "TF_CONFIG":
                    environment["TF_CONFIG"] = json.dumps(
                        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}})
                processes.append(subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, here, files[-1], how, ",".join(addresses), str(rank)],
                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            for process in processes:
                out, _ = process.communicate(timeout=240)
                self.assertEqual(process.returncode, 0, out)
            return [dict(np.load(file)) for file in files]

    def test_two_processes_have_the_bits_of_one(self):
        want = list(distributed(1).values())
        for how in ("TF_CONFIG", "initialize"):
            with self.subTest(how):
                for found in self.run_two(how):
                    for i, value in enumerate(want):
                        np.testing.assert_array_equal(found[f"{i:02d}"], value)


if __name__ == "__main__":
    unittest.main()
