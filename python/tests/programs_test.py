"""Programs as people write them: pipelines, steps, accumulation, clipping, strategies, compiled functions, narrow floats; in
TensorFlow's names, with models of gradus.nn."""
import unittest
import warnings

import gradus.tensorflow as tf
import numpy as np
from gradus import nn


def examples(n=320, classes=8):
    tf.random.set_seed(0)
    x = tf.random.normal((n, classes))
    return x, tf.argmax(x, axis=1)


def network(*sizes, activation=None):
    return nn.Sequential([*[nn.Dense(size, "relu") for size in sizes[:-1]], nn.Dense(sizes[-1], activation=activation)])


class Programs(unittest.TestCase):
    def test_normalized_pipeline_and_fit(self):
        x, y = examples()

        def normalize(x, y):
            return (x - tf.reduce_mean(x)) / tf.math.reduce_std(x), y
        data = tf.data.Dataset.from_tensor_slices((x, y)).map(normalize).batch(32).prefetch(tf.data.AUTOTUNE)
        model = network(16, 8)
        model.compile("adam", nn.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        history = model.fit(data, epochs=10, verbose=False)
        self.assertGreater(history["accuracy"][-1], history["accuracy"][0])
        self.assertEqual(model.predict(data).shape, (320, 8))

    def test_compiled_step_over_a_data_set(self):
        x, y = examples()
        model, optimizer, loss_function = network(16, 8), nn.Adam(0.01), nn.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function
        def train_step(images, labels):
            with tf.GradientTape() as tape:
                loss = loss_function(labels, model(images, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss
        losses = [float(train_step(a, b)) for _ in range(8) for a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(32)]
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertEqual(optimizer.iterations, 80)

    def test_accumulated_gradients_in_a_list(self):
        x, y = examples()
        model, optimizer, loss_function = network(16, 8), nn.Adam(), nn.SparseCategoricalCrossentropy(from_logits=True)
        model(x[:1])
        sums = [tf.zeros_like(v) for v in model.trainable_variables]
        for step, (images, labels) in enumerate(tf.data.Dataset.from_tensor_slices((x, y)).batch(32)):
            with tf.GradientTape() as tape:
                loss = loss_function(labels, model(images))
            for i, gradient in enumerate(tape.gradient(loss, model.trainable_variables)):
                sums[i] += gradient
            if (step + 1) % 2 == 0:
                optimizer.apply_gradients(zip(sums, model.trainable_variables))
                sums = [tf.zeros_like(v) for v in model.trainable_variables]
        self.assertEqual(optimizer.iterations, 5)

    def test_devices_are_asked_for(self):
        gpus = tf.config.list_physical_devices("GPU")
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        self.assertEqual(len(tf.config.list_physical_devices("CPU")), 1)
        with tf.device("/CPU:0"):
            self.assertEqual(tf.reduce_sum(tf.ones([3])).numpy(), 3)

    def test_a_model_is_an_argument_and_gradients_are_clipped(self):
        @tf.function
        def train_step(x, y, model):
            with tf.GradientTape() as tape:
                loss = nn.MeanSquaredError()(y, model(x))
            clipped = [tf.clip_by_norm(g, 1.0) for g in tape.gradient(loss, model.trainable_variables)]
            optimizer.apply_gradients(zip(clipped, model.trainable_variables))
            return tf.linalg.global_norm(clipped) if hasattr(tf.linalg, "global_norm") else tf.global_norm(clipped)
        optimizer = nn.SGD(0.1)
        x = tf.random.normal((100, 5))
        model = network(10, 1)
        self.assertLessEqual(float(train_step(x, 100 * tf.reduce_sum(x, 1, keepdims=True), model)), 2.01)

    def test_accumulation_over_slices(self):
        x, labels = examples(256)
        y = tf.one_hot(labels, 8)
        model, optimizer = network(16, 8, activation="softmax"), nn.Adam()
        total = None
        for i in range(4):
            with tf.GradientTape() as tape:
                found = model(x[i * 64:(i + 1) * 64])
                loss = tf.reduce_mean(nn.categorical_crossentropy(y[i * 64:(i + 1) * 64], found, from_logits=False))
            gradients = tape.gradient(loss, model.trainable_variables)
            total = gradients if total is None else [tf.add(a, b) for a, b in zip(total, gradients)]
        optimizer.apply_gradients(zip(total, model.trainable_variables))
        np.testing.assert_allclose(model(x).numpy().sum(axis=1), 1, rtol=1e-5)

    def test_replicas(self):
        x, labels = examples(300)
        y = tf.one_hot(labels, 8)
        strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
        with strategy.scope():
            model, optimizer = network(16, 8), nn.Adam(0.01)
            loss_function = nn.CategoricalCrossentropy(from_logits=True)

        def distributed_step(batch):
            def replica_step(inputs, labels):
                with tf.GradientTape() as tape:
                    loss = loss_function(labels, model(inputs, training=True))
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables))
                return loss
            return strategy.run(replica_step, args=(batch))
        losses = [float(strategy.reduce("MEAN", distributed_step(batch), axis=None)) for _ in range(3)
                  for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(32))]
        self.assertLess(losses[-1], losses[0])

    def test_replicas_in_fit(self):
        x, y = examples(300)
        weights = []
        for strategy in (None, tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])):
            tf.random.set_seed(4)
            model = network(16, 8)
            model.compile(nn.SGD(0.1), nn.SparseCategoricalCrossentropy(from_logits=True), strategy=strategy)
            model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(32), epochs=2, verbose=False)
            weights.append([v.numpy() for v in model.variables])
        for a, b in zip(*weights):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)

    def test_options_of_functions_change_nothing(self):
        x, labels = examples(64)
        y = tf.one_hot(labels, 8)
        found = []
        for options in ({}, {"jit_compile": True}, {"autograph": False, "reduce_retracing": True}):
            tf.random.set_seed(1)
            model, optimizer = network(16, 8), nn.Adam()
            loss_function = nn.CategoricalCrossentropy(from_logits=True)

            @tf.function(**options)
            def step(x, y):
                with tf.GradientTape() as tape:
                    loss = loss_function(y, model(x))
                optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
                return loss
            found.append([float(step(x, y)) for _ in range(3)])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_means_of_tuples_of_gradients(self):
        x, y = examples(32)
        model, loss_function = network(16, 8), nn.SparseCategoricalCrossentropy(from_logits=True)
        all_of = []
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = loss_function(y, model(x))
            all_of.append(tape.gradient(loss, model.trainable_variables))
        means = [tf.math.reduce_mean(gradient, axis=0) for gradient in zip(*all_of)]
        for mean, one in zip(means, all_of[0]):
            np.testing.assert_allclose(mean.numpy(), one.numpy(), rtol=1e-5, atol=1e-7)

    def test_arrays_of_numpy_in_a_pipeline(self):
        data, labels = np.random.rand(1000, 10), np.random.randint(0, 2, 1000)
        pipeline = tf.data.Dataset.from_tensor_slices((data, labels)).shuffle(buffer_size=100).batch(batch_size=32)
        for x, y in pipeline.prefetch(tf.data.AUTOTUNE).take(2):
            self.assertEqual((x.shape, x.dtype, y.shape), ((32, 10), tf.float64, (32,)))

    def test_a_branch_on_a_tensor(self):
        runs = []

        @tf.function
        def f(x):
            runs.append(1)
            if tf.reduce_sum(x) > 0:
                return x * 2
            return x / 2
        for sign in (1, -1, 1, -1):
            np.testing.assert_allclose(f(tf.constant([1.0, 2.0]) * sign), [2, 4] if sign > 0 else [-0.5, -1])
        self.assertLess(len(runs), 5)

    def test_narrow_floats(self):
        x, labels = examples(64)
        y = tf.one_hot(labels, 8)
        model = nn.Sequential([nn.Dense(32, "relu"), nn.Dense(8)])
        model.set_policy("mixed_bfloat16")
        optimizer, loss_function = nn.Adam(0.01), nn.CategoricalCrossentropy(from_logits=True)
        losses = []
        for _ in range(10):
            with tf.GradientTape() as tape:
                logits = model(x)
                loss = loss_function(y, logits)
            optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables))
            losses.append(float(loss))
        self.assertEqual((logits.dtype, model.variables[0].dtype), (tf.bfloat16, tf.float32))
        self.assertLess(losses[-1], losses[0])

    def test_softmax_before_logits_is_a_notice_as_in_tensorflow(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, y = examples(16)
            loss = nn.SparseCategoricalCrossentropy(from_logits=True)(y, tf.nn.softmax(x))
            self.assertGreater(float(loss), 0)


if __name__ == "__main__":
    unittest.main()
