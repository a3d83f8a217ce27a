"""Keras's fit, evaluate and predict on this engine: what other backends compute, and how often steps are compiled."""
import importlib.util
import itertools
import os
import tempfile
import unittest

import numpy as np

os.environ["KERAS_BACKEND"] = "gradus"
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import gradus.tensorflow as tf  # noqa: E402
import keras  # noqa: E402
from keras import layers, ops  # noqa: E402

ROWS = np.random.default_rng(0).random((640, 20)).astype("float32")
LABELS = (ROWS.sum(1) * 10 % 10).astype("int32")


def classifier(optimizer="adam", outputs=10, **options):
    """A perceptron with given first weights."""
    model = keras.Sequential([keras.Input((20,)), layers.Dense(32, activation="relu"), layers.Dense(outputs)])
    random = np.random.default_rng(1)
    model.set_weights([random.normal(0, 0.1, w.shape).astype("float32") for w in model.get_weights()])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
    return model


def losses(model, x=ROWS, y=LABELS, **options):
    options = {"batch_size": 60, "epochs": 2, **options}
    return model.fit(x, y, shuffle=False, verbose=0, **options).history["loss"]


class Fit(unittest.TestCase):
    def test_the_history_is_that_of_keras_on_tensorflow(self):
        history = classifier().fit(ROWS, LABELS, batch_size=60, epochs=4, verbose=0, shuffle=False, validation_split=0.1).history
        # keras 3.15.1 on tensorflow 2.21
        recorded = {"loss": [2.3018085956573486, 2.2964446544647217, 2.2927417755126953, 2.2895498275756836],
                    "val_loss": [2.312965154647827, 2.317859172821045, 2.323681592941284, 2.3297507762908936],
                    "accuracy": [0.1197916641831398, 0.1284722238779068, 0.125, 0.1354166716337204]}
        for name, values in recorded.items():
            np.testing.assert_allclose(history[name], values, rtol=1e-6, err_msg=name)

    def test_ways_of_running_give_the_same_losses(self):
        want = losses(classifier())
        for options in ({"run_eagerly": True}, {"steps_per_execution": 4}, {"jit_compile": False}):
            np.testing.assert_allclose(losses(classifier(**options)), want, rtol=1e-5, err_msg=str(options))

    def test_kinds_of_data_give_the_same_losses(self):
        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return 10

            def __getitem__(self, i):
                return ROWS[i * 64:(i + 1) * 64], LABELS[i * 64:(i + 1) * 64]

        def generated():
            batches = Batches()
            for _ in range(2):
                yield from (batches[i] for i in range(10))
        want = losses(classifier(), batch_size=64)
        of_slices = gradus.data.from_tensor_slices((ROWS, LABELS)).batch(64)
        for data, options in ((Batches(), {}), (generated(), {"steps_per_epoch": 10}), (of_slices, {})):
            found = losses(classifier(), data, None, batch_size=None, **options)
            np.testing.assert_allclose(found, want, rtol=1e-6, err_msg=type(data).__name__)

    def test_no_batch_of_a_generator_is_lost(self):
        class First(keras.Model):  # which is built by the first batch
            def build(self, shape):
                self.scale = self.add_weight(shape=(), initializer="ones")

            def call(self, x):
                return x * self.scale
        model = First()
        model.compile("sgd", "mse", steps_per_execution=3)
        rows = np.arange(8, dtype="float32").reshape(8, 1)
        found = model.predict(((row[None],) for row in rows), verbose=0)
        np.testing.assert_array_equal(found, rows)
        found = First().predict(gradus.data.from_tensor_slices(rows).batch(3), verbose=0)
        np.testing.assert_array_equal(found, rows)

    def test_a_validation_takes_the_first_batches_of_a_generator_again(self):
        for count, steps in ((None, 2), (3, 2), (2, 2)):
            def generated(count=None):
                for i in itertools.count() if count is None else range(count):
                    yield ROWS[i * 60 % 600:][:60], LABELS[i * 60 % 600:][:60]
            model = classifier(keras.optimizers.SGD(0.0))
            history = model.fit(ROWS, LABELS, epochs=3, verbose=0, validation_data=generated(count), validation_steps=steps).history
            want = model.evaluate(ROWS[:120], LABELS[:120], verbose=0)[0]
            np.testing.assert_allclose(history["val_loss"], [want] * 3, rtol=1e-5)  # as on JAX and TensorFlow

    def test_a_data_set_in_python_is_told_of_ends_as_by_keras(self):
        calls = []

        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                return ROWS[i * 60:(i + 1) * 60], LABELS[i * 60:(i + 1) * 60]

            def on_epoch_end(self):
                calls.append("end")
        classifier().fit(Batches(), epochs=2, verbose=0, shuffle=False)
        self.assertEqual(len(calls), 3)  # keras 3.15.1 on jax: once before the first epoch

    def test_a_step_is_traced_once_for_each_batch_size_of_any_number(self):
        traces = []

        class Counted(layers.Layer):
            def call(self, x):
                traces.append(tuple(x.shape))
                return x
        model = keras.Sequential([keras.Input((20,)), Counted(), layers.Dense(10)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.train_on_batch(ROWS[:40], LABELS[:40])
        traces.clear()
        for size in [*range(1, 31)] * 2:
            model.train_on_batch(ROWS[:size], LABELS[:size])
        self.assertEqual(sorted(traces), [(size, 20) for size in range(1, 31)])

    def test_a_train_step_of_ones_own_is_compiled(self):
        calls = []

        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.scores = layers.Dense(10)

            def call(self, x):
                return self.scores(x)

            def train_step(self, data):
                calls.append(1)
                return super().train_step(data)
        model = Own()
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        found = losses(model, batch_size=64, epochs=5)
        self.assertLess(found[-1], found[0])
        self.assertEqual(len(calls), 1)

    def test_optimizers_whose_updates_are_in_branches_work(self):
        halves = losses(classifier(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)), batch_size=32, epochs=1)
        self.assertTrue(np.isfinite(halves).all())
        model = classifier(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=2.0**10))
        plain = classifier(keras.optimizers.SGD(0.1))
        np.testing.assert_allclose(losses(model), losses(plain), rtol=1e-5)
        scaled = model.optimizer
        scaled.dynamic_scale.assign(np.float32(np.inf))  # a step that is left out, and a smaller scale
        before = model.get_weights()
        model.train_on_batch(ROWS[:60], LABELS[:60])
        np.testing.assert_array_equal(model.get_weights()[0], before[0])

    def test_predictions_and_files(self):
        model = classifier()
        want = model.predict(ROWS, verbose=0)
        self.assertEqual(want.shape, (640, 10))
        np.testing.assert_allclose(model.predict_on_batch(ROWS[:7]), want[:7], rtol=1e-6)
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "model.keras"))
            again = keras.models.load_model(os.path.join(folder, "model.keras"))
        np.testing.assert_array_equal(again.predict(ROWS, verbose=0), want)


class Recurrent(unittest.TestCase):
    x = np.random.default_rng(2).normal(size=(3, 6, 4)).astype("float32")

    def test_fused_layers_are_their_cells_in_a_loop(self):
        cells = {layers.LSTM: layers.LSTMCell, layers.GRU: layers.GRUCell}
        kinds = [{}, {"use_bias": False}, {"activation": "relu", "recurrent_activation": "hard_sigmoid"}]
        for layer, cell in cells.items():
            for options in kinds + ([{"reset_after": False}] if layer is layers.GRU else []):
                for outer in ({"return_sequences": True}, {"go_backwards": True, "return_state": True}):
                    fused = layer(5, bias_initializer="ones", **options, **outer)
                    looped = layers.RNN(cell(5, bias_initializer="ones", **options), **outer)
                    found = fused(self.x)
                    looped(self.x)
                    looped.set_weights(fused.get_weights())
                    for a, b in zip(keras.tree.flatten(found), keras.tree.flatten(looped(self.x))):
                        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"{layer} {options} {outer}")

    def test_a_mask_keeps_the_state(self):
        mask = np.array([[1, 1, 1, 1, 0, 0]] * 3, bool)
        layer = layers.LSTM(5)
        np.testing.assert_allclose(layer(self.x, mask=mask), layer(self.x[:, :4]), rtol=1e-5, atol=1e-6)

    def test_a_long_sequence_is_one_loop(self):
        long = np.zeros((1, 2000, 2), "float32")
        layer = layers.RNN(layers.SimpleRNNCell(3))
        self.assertEqual(tuple(layer(long).shape), (1, 3))


class Loops(unittest.TestCase):
    def test_a_loop_on_values_within_a_model(self):
        class Doubled(layers.Layer):
            def call(self, x):
                return ops.while_loop(lambda i, y: ops.sum(y) < 100.0, lambda i, y: (i + 1, y * 2), (0, x))[1]
        model = keras.Sequential([keras.Input((2,)), Doubled()])  # whose shapes are computed without an end of the loop
        np.testing.assert_array_equal(model.predict(np.ones((2, 2), "float32"), verbose=0), np.full((2, 2), 32))

    def test_a_branch_on_values_within_a_model(self):
        class Branch(layers.Layer):
            def call(self, x):
                return ops.cond(ops.sum(x) > 0, lambda: x * 2, lambda: -x)
        model = keras.Sequential([keras.Input((2,)), Branch()])
        for value, want in ((1.0, 2.0), (-1.0, 1.0), (1.0, 2.0)):
            found = model.predict(np.full((2, 2), value, "float32"), verbose=0)
            np.testing.assert_array_equal(found, np.full((2, 2), want))

    def test_scans_of_nests(self):
        xs = {"a": np.arange(6, dtype="float32").reshape(3, 2), "n": np.arange(3, dtype="int32")}
        for reverse in (False, True):
            carry, ys = ops.scan(lambda c, x: (c + ops.multiply(x["a"], x["n"]), {"sum": c, "n": x["n"] + 1}), np.zeros(2, "float32"), xs,
                                 reverse=reverse)
            at, want = np.zeros(2, "float32"), []
            for i in (range(2, -1, -1) if reverse else range(3)):
                want.append(at)
                at = at + xs["a"][i] * xs["n"][i]
            np.testing.assert_array_equal(carry, at)
            np.testing.assert_array_equal(ys["sum"], want[::-1] if reverse else want)
            np.testing.assert_array_equal(ys["n"], [1, 2, 3])
            self.assertEqual(ys["n"].dtype, "int32")

    def test_prefixes_of_any_length(self):
        for count in range(1, 12):
            x = np.random.default_rng(count).normal(size=(2, count)).astype("float32")
            for reverse in (False, True):
                want = np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(x, 1)
                found = ops.associative_scan(lambda a, b: a + b, x, reverse=reverse, axis=1)
                np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6, err_msg=str(count))

    def test_a_loop_that_is_counted_has_a_gradient(self):
        v = keras.Variable(np.float32(1.5))
        with gradus.GradientTape() as tape:
            y = ops.fori_loop(0, 3, lambda i, y: y * v, ops.ones(()))
        self.assertAlmostEqual(float(tape.gradient(y, v._value)), 3 * 1.5**2, places=5)


class Values(unittest.TestCase):
    def test_a_variable_is_its_value_for_functions_of_the_engine(self):
        v = keras.Variable(np.arange(3, dtype="float32"))
        with gradus.GradientTape() as tape:
            y = gradus.ops.reduce_sum(gradus.ops.square(v))
        np.testing.assert_array_equal(tape.gradient(y, v._value), [0, 2, 4])

    def test_sizes_and_axes_may_be_computed(self):
        x = np.arange(6, dtype="float32").reshape(2, 3)
        np.testing.assert_array_equal(ops.flip(x), np.flip(x))
        np.testing.assert_allclose(ops.softmax(x, axis=None), np.exp(x) / np.exp(x).sum(), rtol=1e-5)
        auc = keras.metrics.AUC()
        auc.update_state([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        self.assertAlmostEqual(float(auc.result()), 0.75, places=2)

    def test_random_numbers_follow_from_their_seed(self):
        draws = [keras.random.normal((1000,), mean=1.0, stddev=2.0, seed=3).numpy() for _ in range(2)]
        np.testing.assert_array_equal(*draws)
        self.assertAlmostEqual(draws[0].mean(), 1, delta=0.2)
        seeds = keras.random.SeedGenerator(3)
        self.assertFalse(np.array_equal(keras.random.uniform((4,), seed=seeds), keras.random.uniform((4,), seed=seeds)))

    def test_dropout_draws_in_each_step_of_a_compiled_function(self):
        seen = []

        class Seen(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                seen.append(float(logs["loss"]))
        model = keras.Sequential([keras.Input((20,)), layers.Dropout(0.5), layers.Dense(1, trainable=False)])
        model.compile("sgd", "mse")
        model.fit(ROWS[:8].repeat(2, 0)[::2], LABELS[:8], epochs=5, verbose=0, callbacks=[Seen()])
        self.assertGreater(len(set(seen)), 1)



class TwoNetworks(keras.Model):
    """No network itself: a train_step that calls two, whose weights and slots come into being with the first step."""

    def __init__(self):
        super().__init__()
        self.first, self.second = keras.layers.Dense(4), keras.layers.Dense(1)

    def compile(self):
        super().compile()
        self.rates = [keras.optimizers.Adam(0.1), keras.optimizers.SGD(0.1)]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = keras.ops.mean((self.second(self.first(x)) - y) ** 2)
        weights = self.trainable_weights
        gradients = tape.gradient(loss, weights)
        self.rates[0].apply_gradients(zip(gradients[:2], weights[:2]))
        self.rates[1].apply_gradients(zip(gradients[2:], weights[2:]))
        return {"error": loss}


class Predict(unittest.TestCase):
    def test_one_batch_is_predicted_as_by_the_loop(self):
        model = classifier()
        for rows in (ROWS[:1], ROWS[:32], ROWS[:7].astype("float64"), (ROWS[:3] * 9).astype("int32")):
            found = model.predict(rows, verbose=0)
            np.testing.assert_array_equal(found, model.predict(rows, verbose=0, callbacks=[keras.callbacks.Callback()]))
            self.assertEqual((type(found), found.dtype), (np.ndarray, np.float32))
        self.assertEqual(model.predict(ROWS[:33], verbose=0).shape, (33, 10))
        with self.assertRaises(ValueError):
            model.predict(ROWS[:0], verbose=0)


class OwnSteps(unittest.TestCase):
    def test_a_model_without_a_call_trains_by_its_step(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((64, 3)).astype("float32")
        y = x.sum(1, keepdims=True)
        keras.utils.set_random_seed(1)
        by_steps = TwoNetworks()
        by_steps.compile()
        errors = by_steps.fit(x, y, batch_size=16, epochs=4, shuffle=False, verbose=0).history["error"]
        self.assertLess(errors[-1], errors[0])
        keras.utils.set_random_seed(1)
        op_by_op = TwoNetworks()
        op_by_op.compile()
        op_by_op.run_eagerly = True
        self.assertEqual(op_by_op.fit(x, y, batch_size=16, epochs=4, shuffle=False, verbose=0).history["error"], errors)

if __name__ == "__main__":
    unittest.main()
