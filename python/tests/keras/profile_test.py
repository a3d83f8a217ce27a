"""Layers of Keras in the engine's reports: rows of profiles, places in messages."""
import importlib.util
import json
import os
import unittest

import numpy as np

os.environ["KERAS_BACKEND"] = "gradus"
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import gradus.tensorflow as tf  # noqa: E402
import keras  # noqa: E402
from keras import layers  # noqa: E402

X = np.random.default_rng(0).random((64, 20)).astype("float32")
Y = np.arange(64) % 10


def layer_rows(report):
    return {row["name"]: row["calls"] for row in json.loads(report.to_json())["rows"] if row["kind"] == "layer"}


class Layers(unittest.TestCase):
    def test_a_training_has_a_row_for_each_layer_and_the_optimizer(self):
        inner = keras.Sequential([keras.Input((30,)), layers.Dense(8, activation="tanh", name="small")], name="inner")
        model = keras.Sequential([keras.Input((20,)), layers.Dense(30, name="wide"), inner, layers.Dense(10, name="last")], name="outer")
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(X, Y, batch_size=16, verbose=0)
        with gradus.profile() as taken:
            model.fit(X, Y, batch_size=16, verbose=0)
        rows = layer_rows(taken.report)
        for wanted in ("outer/wide", "outer/inner/small", "outer/last"):
            self.assertEqual(rows.get(wanted), 4, rows)
        self.assertTrue(any("adam" in name for name in rows), rows)

    def test_scopes_of_names_are_layers(self):
        f = gradus.function(lambda x: x @ x)
        with gradus.profile() as taken, tf.name_scope("part"):
            f(gradus.ops.ones([64, 64])).numpy()
        self.assertIn("part", layer_rows(taken.report))

    def test_scopes_end_where_calls_fail(self):
        class Fails(layers.Layer):
            def call(self, x):
                raise RuntimeError("on purpose")
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "on purpose"):
                keras.Sequential([Fails(name="fails")], name="failing")(X)
        f = gradus.function(lambda x: x @ x)
        with gradus.profile() as taken:
            f(gradus.ops.ones([64, 64])).numpy()
        self.assertEqual([name for name in layer_rows(taken.report) if "fail" in name], [])


if __name__ == "__main__":
    unittest.main()
