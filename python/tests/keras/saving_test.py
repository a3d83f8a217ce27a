"""Files of models and weights, written here and read by another backend, and the other way round."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "gradus")
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import keras  # noqa: E402
from keras import layers  # noqa: E402

# The other backend, NumPy's, which needs JAX, predicts by the model and by the weights of one, and writes both.
OTHER = """
import sys, keras, numpy as np
sys.path.insert(0, sys.argv[2])
import saving_test
folder = sys.argv[1]
assert keras.config.backend() == "numpy"
model = keras.saving.load_model(folder + "/model.keras")
np.save(folder + "/by_model.npy", model.predict(saving_test.rows(), verbose=0))
model.set_weights([w / 2 for w in model.get_weights()])
model.save(folder + "/other.keras")
model.save_weights(folder + "/other.weights.h5")
np.save(folder + "/by_other.npy", model.predict(saving_test.rows(), verbose=0))
model = saving_test.branching()
model.load_weights(folder + "/model.weights.h5")
np.save(folder + "/by_weights.npy", model.predict(saving_test.rows(), verbose=0))
"""


def rows():
    return [np.random.default_rng(0).random((5, 8, 8, 3)).astype("float32"), np.arange(15).reshape(5, 3) % 7]


def branching():
    """A functional model that branches, shares a layer, and has state that is not trained."""
    image, words = keras.Input((8, 8, 3)), keras.Input((3,), dtype="int32")
    x = layers.Conv2D(4, 3, activation="relu", name="conv")(image)
    x = layers.BatchNormalization(name="norm")(x)
    shared = layers.Dense(6, activation="tanh", name="shared")
    first = shared(layers.GlobalAveragePooling2D()(x))
    second = shared(layers.Dense(4)(layers.LSTM(5, name="lstm")(layers.Embedding(7, 4, name="words")(words))))
    return keras.Model([image, words], layers.Dense(2, activation="softmax")(layers.add([first, second])))


class Files(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("jax"), "Keras's backend of NumPy needs JAX")
    def test_they_are_read_by_every_backend(self):
        model = branching()
        model.compile("adam", "categorical_crossentropy")
        model.fit(rows(), np.eye(2)[[0, 1, 0, 1, 1]], epochs=2, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.keras")
            model.save_weights(f"{folder}/model.weights.h5")
            done = subprocess.run([sys.executable, "-c", OTHER, folder, os.path.dirname(os.path.abspath(__file__))],
                                  env={**os.environ, "KERAS_BACKEND": "numpy"}, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            want = model.predict(rows(), verbose=0)
            for name in ("by_model", "by_weights"):
                np.testing.assert_allclose(np.load(f"{folder}/{name}.npy"), want, rtol=1e-5, atol=1e-6)
            want = np.load(f"{folder}/by_other.npy")
            loaded = keras.saving.load_model(f"{folder}/other.keras")
            model.load_weights(f"{folder}/other.weights.h5")
            for found in (loaded, model):
                np.testing.assert_allclose(found.predict(rows(), verbose=0), want, rtol=1e-5, atol=1e-6)

    def test_a_training_goes_on_after_loading(self):
        model = branching()
        model.compile("adam", "categorical_crossentropy")
        y = np.eye(2)[[0, 1, 0, 1, 1]]
        model.fit(rows(), y, epochs=2, shuffle=False, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.keras")
            other = keras.saving.load_model(f"{folder}/model.keras")
        histories = [each.fit(rows(), y, epochs=2, shuffle=False, verbose=0).history["loss"] for each in (model, other)]
        self.assertEqual(*histories)

    def test_a_lambda_is_refused_unless_it_is_asked_for(self):
        model = keras.Sequential([keras.Input((3,)), layers.Lambda(lambda x: x * 2)])
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.keras")
            with self.assertRaisesRegex(ValueError, "unsafe"):
                keras.saving.load_model(f"{folder}/model.keras")
            loaded = keras.saving.load_model(f"{folder}/model.keras", safe_mode=False)
            np.testing.assert_array_equal(loaded.predict(np.ones((2, 3)), verbose=0), np.full((2, 3), 2))


if __name__ == "__main__":
    unittest.main()
