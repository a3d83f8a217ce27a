"""gradus.keras and tf.keras: programs of TensorFlow with Keras's models, and what a Keras that is not there says."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import gradus  # noqa: E402
import gradus.tensorflow as tf  # noqa: E402
from gradus import keras  # noqa: E402
from gradus.tensorflow.keras import layers  # noqa: E402

ROWS = np.random.default_rng(0).random((44, 5)).astype("float32")


def run(program, **environment):
    """The output of a new Python that runs a program."""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True)
    return done.stdout + done.stderr


class Names(unittest.TestCase):
    def test_both_are_the_installed_keras(self):
        import keras as installed
        self.assertIs(keras, installed)
        self.assertIs(tf.keras, installed)
        self.assertIs(gradus.keras, installed)
        self.assertIs(layers.Dense, installed.layers.Dense)

    def test_it_is_loaded_when_it_is_asked_for(self):
        said = run("import sys, gradus.tensorflow as tf; print('keras' in sys.modules); tf.keras; print('keras' in sys.modules)")
        self.assertEqual(said, "False\nTrue\n")

    def test_a_missing_keras_is_named(self):
        hidden = ("import importlib.util, sys\nfind = importlib.util.find_spec\n"
                  "importlib.util.find_spec = lambda name, *of: None if name == 'keras' else find(name, *of)\n")
        for line in ("from gradus import keras", "import gradus.tensorflow as tf; tf.keras"):
            self.assertIn("ImportError: gradus.keras is Keras, which is not installed: pip install", run(hidden + line))

    @unittest.skipUnless(importlib.util.find_spec("jax"), "Keras's backend of NumPy needs JAX")
    def test_a_keras_on_another_backend_is_refused(self):
        said = run("import keras\nfrom gradus import keras", KERAS_BACKEND="numpy")
        self.assertIn("ImportError: gradus.keras: Keras runs on numpy already", said)

    def test_a_program_of_tensorflow_runs_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text("import tensorflow as tf\nfrom tensorflow.keras import layers\nfrom tensorflow import keras\n"
                               "model = keras.Sequential([layers.Dense(2)])\nmodel.compile('sgd', 'mse')\n"
                               "x = tf.ones((6, 3))\nmodel.fit(x, x[:, :2], verbose=0)\n"
                               "import keras as other, tf_keras\nfrom tensorflow.keras.layers import Dense\n"
                               "print(keras.config.backend(), other is tf.keras is tf_keras, Dense is layers.Dense)\n")
            done = subprocess.run([sys.executable, "-m", "gradus.run", str(program)], capture_output=True, text=True)
            self.assertEqual(done.stdout, "gradus True True\n", done.stderr)


class Loops(unittest.TestCase):
    def test_a_tape_takes_the_variables_of_a_model(self):
        model = keras.Sequential([keras.Input((5,)), layers.Dense(3)])
        for tape in (tf.GradientTape(persistent=True), gradus.GradientTape(persistent=True)):
            with tape:
                loss = tf.reduce_sum(model(ROWS))
            kernel, bias = tape.gradient(loss, model.trainable_variables)
            np.testing.assert_allclose(bias, [44, 44, 44])
            named = tape.gradient(loss, {"kernel": model.weights[0], "rows": model.weights[1]})
            np.testing.assert_array_equal(named["kernel"], kernel)
            np.testing.assert_allclose(tape.gradient(loss, model.weights[1]), bias)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(model.weights[0])
            loss = tf.reduce_sum(model(ROWS))
        np.testing.assert_array_equal(tape.gradient(loss, model.weights[0]), kernel)

    def test_a_traced_step_builds_the_model_and_takes_batches_of_any_size(self):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dropout(0.1), layers.Dense(1)])
        optimizer = keras.optimizers.Adam(0.05)

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss
        data = tf.data.Dataset.from_tensor_slices((ROWS, ROWS.sum(1, keepdims=True))).batch(20)  # the last one has 4 rows
        losses = [float(step(x, y)) for _ in range(20) for x, y in data]
        self.assertLess(losses[-1], losses[0] / 3)
        self.assertEqual(int(optimizer.iterations.numpy()), 60)
        self.assertEqual([tuple(v.shape) for v in model.weights[:2]], [(5, 8), (8,)])

    def test_initial_values_are_those_of_a_model_that_is_built_before(self):
        def made(build):
            keras.utils.set_random_seed(3)
            model = keras.Sequential([layers.LSTM(4), layers.Dense(2)])
            build(model)
            return model.get_weights()
        sequences = np.ones((2, 3, 5), "float32")
        for found, expected in zip(made(lambda model: tf.function(model)(sequences)), made(lambda model: model(sequences))):
            np.testing.assert_array_equal(found, expected)

    def test_scaled_losses(self):
        for optimizer in (keras.optimizers.SGD(0.1), keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))):
            model = keras.Sequential([keras.Input((5,)), layers.Dense(1, kernel_initializer="zeros")])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(ROWS) - 1))
                scaled = optimizer.get_scaled_loss(loss)
            gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, model.trainable_variables))
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            np.testing.assert_allclose(model.weights[1].numpy(), [0.2], rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
