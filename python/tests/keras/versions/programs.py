"""Twenty-three small programs of Keras, which run with each version that the backend knows: tools/keras_versions.sh.

They are about what differs between versions: where Keras's text asks the backend for something. Their numbers are checked
against what must hold in any version: losses fall, files give the same predictions, results have their shapes.
"""
import contextlib
import os
import tempfile
import unittest

os.environ["KERAS_BACKEND"] = "gradus"
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers, ops  # noqa: E402

RNG = np.random.default_rng(0)


def rows(*shape):
    return RNG.normal(size=shape).astype("float32")


class Programs(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy("float32")
        self.folder = tempfile.mkdtemp()

    def fitted(self, model, x, y, loss="mse", optimizer="adam", epochs=6, falls=True, **options):
        model.compile(optimizer, loss, **options)
        history = model.fit(x, y, epochs=epochs, batch_size=8, verbose=0).history
        if falls:
            self.assertLess(history["loss"][-1], history["loss"][0])
        return history

    # ---- texts

    def test_layers_of_texts_and_tables_without_tensorflow(self):
        texts, labels = np.array(["good day", "bad day", "good good", "bad bad"]), np.array([1, 0, 1, 0], "float32")
        words = layers.TextVectorization(output_mode="multi_hot")
        words.adapt(texts)
        model = keras.Sequential([keras.Input((1,), dtype="string"), words, layers.Dense(1, "sigmoid")])
        self.fitted(model, texts[:, None], labels, "binary_crossentropy")
        path = os.path.join(self.folder, "texts.keras")
        model.save(path)
        again = keras.models.load_model(path)
        np.testing.assert_allclose(again.predict(texts[:, None], verbose=0), model.predict(texts[:, None], verbose=0), rtol=1e-6)
        self.assertEqual(layers.StringLookup(vocabulary=["a", "b"])(["b", "?"]).numpy().tolist(), [2, 0])
        self.assertEqual(layers.IntegerLookup(vocabulary=[7, 9])([9, 1]).numpy().tolist(), [2, 0])
        self.assertEqual(layers.Hashing(3)(["a", "b", "c"]).numpy().tolist(), [0, 1, 1])
        self.assertEqual(layers.HashedCrossing(5)((np.array(["A"]), np.array([101]))).shape, (1,))

    def test_helpers_for_data_and_tensorboard_without_tensorflow(self):
        series = keras.utils.timeseries_dataset_from_array(np.arange(30.0)[:, None], np.arange(30.0), sequence_length=4, batch_size=8)
        left, right = keras.utils.split_dataset(np.arange(10.0), left_size=0.5)
        self.assertEqual((len(list(left)), len(list(right))), (5, 5))
        model = keras.Sequential([layers.Flatten(), layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(series, verbose=0, callbacks=[keras.callbacks.TensorBoard(self.folder)])
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "train"))), 1)

    # ---- models

    def test_perceptron_with_metrics_validation_and_class_weights(self):
        x, y = rows(40, 5), RNG.integers(0, 3, 40)
        model = keras.Sequential([layers.Dense(16, "relu"), layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        history = model.fit(x, y, epochs=5, validation_split=0.25, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, verbose=0).history
        self.assertEqual(set(history), {"loss", "accuracy", "val_loss", "val_accuracy"})
        self.assertLess(history["loss"][-1], history["loss"][0])
        found = []
        for count in (1, 2):
            with keras.distribution.DataParallel(devices=[f"cpu:{i}" for i in range(count)]).scope():
                found.append(model.evaluate(x, y, verbose=0) + [*model.predict(x, verbose=0)[0]])
        self.assertEqual(*found)
        np.testing.assert_allclose(found[0][:2], model.evaluate(x, y, verbose=0), rtol=1e-5)

    def test_activity_regularizers_of_replicas_are_those_of_one_device(self):
        """Until 3.13 they add up over the rows of a batch, later they are the mean over them."""
        def trained(scope):
            keras.utils.set_random_seed(2)
            with scope:
                model = keras.Sequential([keras.Input((6,)), layers.Dense(4, "tanh", activity_regularizer=keras.regularizers.L2(0.1)),
                                          layers.Dense(1)])
                history = self.fitted(model, x, y, optimizer=keras.optimizers.SGD(0.02), epochs=3, falls=False)
                return [history["loss"], *model.get_weights()]
        x, y = rows(36, 6), rows(36, 1)
        one = trained(contextlib.nullcontext())
        for count in (1, 3):
            several = trained(keras.distribution.DataParallel(devices=[f"cpu:{i}" for i in range(count)]).scope())
            for a, b in zip(several, one, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_convolutions(self):
        model = keras.Sequential([
            keras.Input((12, 12, 3)), layers.Conv2D(4, 3, padding="same", activation="relu"), layers.BatchNormalization(),
            layers.MaxPooling2D(), layers.SeparableConv2D(6, 3), layers.SpatialDropout2D(0.1),
            layers.GlobalAveragePooling2D(), layers.Dense(2)])
        self.fitted(model, rows(16, 12, 12, 3), rows(16, 2))

    def test_recurrent_layers_with_masks(self):
        words = RNG.integers(0, 9, (24, 7))
        model = keras.Sequential([layers.Embedding(9, 5, mask_zero=True),
                                  layers.Bidirectional(layers.LSTM(4, return_sequences=True)), layers.GRU(4),
                                  layers.Dense(1)])
        self.fitted(model, words, rows(24, 1))

    def test_stateful_and_stacked_cells(self):
        layer = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], return_sequences=True)
        self.assertEqual(tuple(layer(rows(2, 4, 3)).shape), (2, 4, 2))
        model = keras.Sequential([keras.Input(batch_shape=(2, 4, 3)), layers.LSTM(3, stateful=True)])
        x = rows(2, 4, 3)
        first = model.predict(x, verbose=0, batch_size=2)
        self.assertFalse(np.array_equal(first, model.predict(x, verbose=0, batch_size=2)))
        model.layers[0].reset_state()
        np.testing.assert_array_equal(first, model.predict(x, verbose=0, batch_size=2))

    def test_a_transformer_block(self):
        words = keras.Input((6,), dtype="int32")
        x = layers.Embedding(11, 8)(words)
        x = layers.LayerNormalization()(layers.add([x, layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)]))
        x = layers.add([x, layers.Dense(8)(layers.Dense(16, "gelu")(x))])
        model = keras.Model(words, layers.Dense(11)(x))
        data = RNG.integers(0, 11, (16, 7))
        self.fitted(model, data[:, :-1], data[:, 1:], keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def test_functional_models_with_several_inputs_and_outputs(self):
        a, b = keras.Input((4,), name="a"), keras.Input((2,), name="b")
        shared = layers.Dense(3, "tanh")
        x = layers.concatenate([shared(a), layers.Dense(3)(b)])
        model = keras.Model({"a": a, "b": b}, {"sum": layers.Dense(1, name="sum")(x), "kind": layers.Dense(2, name="kind")(x)})
        data = {"a": rows(16, 4), "b": rows(16, 2)}
        history = self.fitted(model, data, {"sum": rows(16, 1), "kind": rows(16, 2)}, {"sum": "mse", "kind": "mae"})
        self.assertEqual(set(model.predict(data, verbose=0)), {"sum", "kind"})
        self.assertIn("loss", history)

    def test_subclassed_layers_and_models(self):
        class Scale(layers.Layer):
            def build(self, shape):
                self.factor = self.add_weight(shape=(shape[-1],), initializer="ones", regularizer="l1")
                self.count = self.add_weight(shape=(), dtype="int32", trainable=False, initializer="zeros")

            def call(self, x, training=False):
                if training:
                    self.count.assign(self.count + 1)
                self.add_loss(0.01 * ops.mean(x ** 2))
                return x * self.factor

        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.scale, self.last = Scale(), layers.Dense(1)

            def call(self, x, training=False):
                return self.last(self.scale(x, training=training))
        model = Net()
        self.fitted(model, rows(16, 4), rows(16, 1), epochs=3)
        self.assertEqual(int(model.scale.count), 6)

    def test_a_train_step_of_ones_own(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.tracker = layers.Dense(1), keras.metrics.Mean("own")

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                import gradus.tensorflow as tf
                x, y = data
                with tf.GradientTape() as tape:
                    loss = ops.mean((self(x) - y) ** 2)
                self.optimizer.apply(tape.gradient(loss, self.trainable_variables),
                                     self.trainable_variables)
                self.tracker.update_state(loss)
                return {"own": self.tracker.result()}
        model = Own()
        model.compile("adam")
        history = model.fit(rows(16, 3), rows(16, 1), epochs=4, verbose=0).history["own"]
        self.assertLess(history[-1], history[0])

    def test_a_variational_autoencoder(self):
        class Sampling(layers.Layer):
            def __init__(self):
                super().__init__()
                self.seeds = keras.random.SeedGenerator(3)

            def call(self, given):
                mean, log_variance = given
                self.add_loss(-0.005 * ops.mean(1 + log_variance - mean ** 2 - ops.exp(log_variance)))
                return mean + ops.exp(0.5 * log_variance) * keras.random.normal(ops.shape(mean), seed=self.seeds)
        x = keras.Input((8,))
        h = layers.Dense(6, "relu")(x)
        z = Sampling()([layers.Dense(2)(h), layers.Dense(2)(h)])
        data = rows(32, 8)
        self.fitted(keras.Model(x, layers.Dense(8)(layers.Dense(6, "relu")(z))), data, data, epochs=10)

    # ---- training

    def test_optimizers_schedules_and_clipping(self):
        x, y = rows(24, 3), rows(24, 1)
        schedule = keras.optimizers.schedules.CosineDecay(0.05, 40, warmup_target=0.06, warmup_steps=3)
        for optimizer in (keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True, clipnorm=1.0),
                          keras.optimizers.AdamW(schedule, weight_decay=0.01), keras.optimizers.RMSprop(0.01, centered=True),
                          keras.optimizers.Adafactor(0.05), keras.optimizers.Lion(0.01, clipvalue=1.0),
                          keras.optimizers.Adam(0.02, use_ema=True, gradient_accumulation_steps=2)):
            model = keras.Sequential([layers.Dense(6, "relu"), layers.Dense(1)])
            self.fitted(model, x, y, optimizer=optimizer, epochs=8)

    def test_mixed_precision_with_loss_scaling(self):
        for policy in ("mixed_bfloat16", "mixed_float16"):
            keras.config.set_dtype_policy(policy)
            model = keras.Sequential([layers.Dense(16, "relu"), layers.Dense(1, dtype="float32")])
            self.fitted(model, rows(32, 4), rows(32, 1), epochs=8)
            self.assertEqual(model.layers[0].compute_dtype, policy.removeprefix("mixed_"))
            self.assertEqual(model.layers[0].kernel.dtype, "float32")

    def test_callbacks(self):
        x, y = rows(32, 3), rows(32, 1)
        model = keras.Sequential([keras.Input((3,)), layers.Dense(4, "relu"), layers.Dense(1)])
        model.compile("sgd", "mse")
        path = os.path.join(self.folder, "best.keras")
        seen = []
        model.fit(x, y, epochs=5, validation_split=0.25, verbose=0, callbacks=[
            keras.callbacks.ModelCheckpoint(path, save_best_only=True), keras.callbacks.EarlyStopping(patience=3),
            keras.callbacks.ReduceLROnPlateau(patience=1), keras.callbacks.CSVLogger(os.path.join(self.folder, "log.csv")),
            keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["val_loss"])),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)])
        best = keras.saving.load_model(path).evaluate(x[24:], y[24:], verbose=0)
        self.assertAlmostEqual(best, min(seen), places=5)

    def test_data_of_every_kind(self):
        x, y = rows(16, 3), rows(16, 1)

        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                return x[4 * i:4 * i + 4], y[4 * i:4 * i + 4]

        def generated():
            for i in range(4):
                yield x[4 * i:4 * i + 4], y[4 * i:4 * i + 4]
        losses = []
        for data in (Batches(), generated(), None):
            keras.utils.set_random_seed(2)
            model = keras.Sequential([layers.Dense(1)])
            model.compile("sgd", "mse")
            given = {"x": x, "y": y, "batch_size": 4} if data is None else {"x": data}
            losses.append(model.fit(**given, shuffle=False, verbose=0).history["loss"][0])
        np.testing.assert_allclose(losses, losses[0], rtol=1e-6)

    def test_custom_losses_and_metrics(self):
        class Within(keras.metrics.Metric):
            def __init__(self, **options):
                super().__init__(name="within", **options)
                self.hits = self.add_weight(name="hits", initializer="zeros")
                self.total = self.add_weight(name="total", initializer="zeros")

            def update_state(self, y_true, y_pred, sample_weight=None):
                hits = ops.cast(ops.abs(y_true - y_pred) < 1.0, "float32")
                self.hits.assign(self.hits + ops.sum(hits))
                self.total.assign(self.total + ops.cast(ops.size(hits), "float32"))

            def result(self):
                return self.hits / self.total

        def huber(y_true, y_pred):
            gap = ops.abs(y_true - y_pred)
            return ops.mean(ops.where(gap < 1, 0.5 * gap ** 2, gap - 0.5), axis=-1)
        x, y = rows(24, 3), rows(24, 1)
        model = keras.Sequential([layers.Dense(1)])
        history = self.fitted(model, x, y, loss=huber, metrics=[Within()])
        near = np.mean(np.abs(model.predict(x, verbose=0) - y) < 1)
        self.assertAlmostEqual(model.evaluate(x, y, verbose=0)[1], near, places=5)
        self.assertEqual(len(history["within"]), 6)

    # ---- files and parts of models

    def test_files_give_the_same_predictions(self):
        x = rows(4, 6, 6, 2)
        image = keras.Input((6, 6, 2))
        y = layers.Conv2D(3, 3, activation="swish")(image)
        y = layers.Flatten()(layers.GroupNormalization(3)(y))
        model = keras.Model(image, layers.Dense(2, kernel_initializer="orthogonal")(y))
        model.compile("adam", "mse")
        model.fit(x, rows(4, 2), verbose=0)
        want = model.predict(x, verbose=0)
        model.save(f"{self.folder}/net.keras")
        np.testing.assert_array_equal(keras.saving.load_model(f"{self.folder}/net.keras").predict(x, verbose=0), want)
        model.save_weights(f"{self.folder}/net.weights.h5")
        other = keras.models.clone_model(model)
        other.load_weights(f"{self.folder}/net.weights.h5")
        np.testing.assert_array_equal(other.predict(x, verbose=0), want)
        from_json = keras.models.model_from_json(model.to_json())
        from_json.set_weights(model.get_weights())
        np.testing.assert_array_equal(from_json.predict(x, verbose=0), want)
        model.export(f"{self.folder}/net.onnx", format="onnx", verbose=False)
        np.testing.assert_allclose(gradus.onnx.load(f"{self.folder}/net.onnx")(x)[0], want, rtol=1e-5, atol=1e-5)
        model.export(f"{self.folder}/net.o", format="object", verbose=False)

    def test_transfer_with_frozen_layers(self):
        base = keras.Sequential([keras.Input((4,)), layers.Dense(5, "relu"), layers.BatchNormalization()])
        base.trainable = False
        model = keras.Sequential([base, layers.Dense(1)])
        before = [np.array(w) for w in base.weights]
        self.fitted(model, rows(16, 4), rows(16, 1))
        for a, b in zip(before, base.weights):
            np.testing.assert_array_equal(a, b)
        self.assertEqual(len(model.trainable_weights), 2)

    def test_preprocessing_layers(self):
        x = rows(32, 2) * 5 + 3
        normal = layers.Normalization()
        normal.adapt(x)
        np.testing.assert_allclose(np.asarray(normal(x)).mean(0), [0, 0], atol=1e-5)
        buckets = layers.Discretization(bin_boundaries=[0.0, 3.0, 6.0])
        np.testing.assert_array_equal(buckets(x[:, 0]), np.digitize(x[:, 0], [0.0, 3.0, 6.0]))
        images = layers.RandomFlip("horizontal", seed=1)(layers.Rescaling(1 / 255)(rows(2, 8, 8, 3)))
        self.assertEqual(tuple(layers.CenterCrop(4, 4)(layers.Resizing(6, 6)(images)).shape), (2, 4, 4, 3))

    def test_quantization_and_low_rank_updates(self):
        model = keras.Sequential([keras.Input((8,)), layers.Dense(16, "relu"), layers.Dense(2)])
        x = rows(8, 8)
        want = model.predict(x, verbose=0)
        model.layers[0].enable_lora(2)
        self.assertEqual(len(model.layers[0].trainable_weights), 3)
        model.quantize("int8")
        np.testing.assert_allclose(model.predict(x, verbose=0), want, atol=0.15)

    def test_operations_and_control_flow(self):
        x = rows(3, 4)
        np.testing.assert_allclose(ops.einsum("ij,kj->ik", x, x), x @ x.T, rtol=1e-5)
        np.testing.assert_allclose(ops.logsumexp(x, axis=1), np.log(np.exp(x).sum(1)), rtol=1e-5)
        np.testing.assert_array_equal(ops.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0))[1], 10)
        total, parts = ops.scan(lambda c, r: (c + r, c), ops.zeros((4,)), x)
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-5)
        np.testing.assert_allclose(parts[1], x[0], rtol=1e-5)
        np.testing.assert_allclose(ops.vectorized_map(lambda r: r * ops.sum(r), x), x * x.sum(1, keepdims=True), rtol=1e-5)
        found = ops.cond(ops.sum(x) > 1e9, lambda: ops.zeros(()), lambda: ops.ones(()))
        self.assertEqual(float(found), 1.0)

    def test_symbolic_shapes_and_summaries(self):
        image = keras.Input((None, None, 3))
        y = layers.UpSampling2D()(layers.Conv2D(4, 3, padding="same")(image))
        model = keras.Model(image, layers.GlobalMaxPooling2D()(y))
        self.assertEqual(y.shape, (None, None, None, 4))
        lines = []
        model.summary(print_fn=lambda line, *args, **kwargs: lines.append(line))
        self.assertIn("112", "\n".join(lines))
        for size in (4, 6):
            self.assertEqual(model.predict(rows(2, size, size, 3), verbose=0).shape, (2, 4))


if __name__ == "__main__":
    print("Keras", keras.__version__, flush=True)
    unittest.main()
