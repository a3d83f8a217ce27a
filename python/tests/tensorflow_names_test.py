"""TensorFlow's functions: names and parameters against a stored file of TensorFlow's own, and dtype rules."""
import importlib
import inspect
import json
import pathlib
import subprocess
import sys
import unittest

import gradus
import gradus.tensorflow as tf
import numpy as np
from gradus.tensorflow._tables import own_order

STORED = json.loads((pathlib.Path(__file__).resolve().parent / "data/tensorflow_parameters.json").read_text(encoding="utf-8"))
MODULES = ("math", "nn", "linalg", "image", "signal", "random", "bitwise", "io", "strings", "debugging", "summary", "audio")


def functions(module):
    """The functions of a module, without those that it takes from others for its own use."""
    whole = f"gradus.tensorflow.{module}"
    names = vars(importlib.import_module(whole))
    return {name: f for name, f in names.items()
            if callable(f) and not name.startswith("_") and name != "fill" and not inspect.isclass(f)
            and (getattr(f, "__module__", "") == whole or name in STORED[module])}


class Names(unittest.TestCase):
    def test_parameters_are_tensorflows_in_their_order(self):
        for module in MODULES:
            for name, function in functions(module).items():
                with self.subTest(function=f"tf.{module}.{name}"):
                    self.assertIn(name, STORED[module])
                    theirs = [parameter.rstrip("=") for parameter in STORED[module][name]]
                    ours = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
                    if ours[-1:] == ["name"]:  # the last one, taken and ignored, also where TensorFlow has others before it
                        ours.pop()
                    self.assertEqual(ours, theirs[:len(ours)])

    def test_tables_read_signatures_as_python_does(self):
        for room in (gradus.ops, gradus.random):
            for name, function in vars(room).items():
                if getattr(function, "__text_signature__", None):
                    parameters = inspect.signature(function).parameters.values()
                    self.assertEqual(own_order(function), [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD], name)

    def test_the_import_brings_no_heavy_modules(self):
        text = "import sys, ml_dtypes; before = set(sys.modules); import gradus.tensorflow; print(*(set(sys.modules) - before))"
        new = set(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.split())
        self.assertIn("gradus.tensorflow.math", new)
        self.assertEqual(new & {"asyncio", "concurrent", "hmac", "http", "logging", "lzma", "multiprocessing", "pickle", "secrets",
                                "shutil", "socket", "subprocess", "tempfile", "unittest", "zipfile"}, set())

    def test_most_of_math_is_there(self):
        self.assertGreater(len(functions("math")), 110)


class Rules(unittest.TestCase):
    def test_calls_by_place_by_name_and_with_a_name(self):
        x = np.ones([2, 3], "float32")
        for total in (tf.math.reduce_sum(x, 1), tf.math.reduce_sum(input_tensor=x, axis=1, name="total"),
                      tf.math.reduce_sum(x, None, False)):
            self.assertEqual(total.numpy().sum(), 6)
        self.assertEqual(tf.math.add(x[0, 0], y=2.0).numpy(), 3)
        with self.assertRaisesRegex(TypeError, "reduce_sum has no argument `axes`; did you mean `axis`"):
            tf.math.reduce_sum(x, axes=1)
        with self.assertRaisesRegex(TypeError, "given twice"):
            tf.math.reduce_sum(x, input_tensor=x)
        with self.assertRaisesRegex(TypeError, "takes 4 arguments, 5 were given"):
            tf.math.reduce_sum(x, 1, False, None, 5)

    def test_integers_divide_to_float64_and_have_means(self):
        self.assertEqual(tf.math.divide(np.int32(1), np.int32(4)).numpy(), 0.25)
        self.assertEqual(tf.math.reduce_mean(np.array([1, 2], "int32")).numpy().dtype, "int32")
        self.assertEqual(tf.math.reduce_mean(np.array([1, 2], "int32")).numpy(), 1)

    def test_argmax_is_int64_and_of_the_first_axis(self):
        found = tf.math.argmax(np.array([[1.0, 5.0], [3.0, 2.0]]))
        self.assertEqual((found.numpy().tolist(), found.numpy().dtype), ([1, 0], "int64"))

    def test_a_convolution_as_tensorflow_writes_it(self):
        x, filters = np.ones([1, 4, 4, 1], "float32"), np.ones([3, 3, 1, 1], "float32")
        self.assertEqual(tuple(tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME").shape), (1, 2, 2, 1))
        self.assertEqual(tuple(tf.nn.max_pool2d(x, 2, 2, "VALID").shape), (1, 2, 2, 1))

    def test_random_numbers(self):
        numbers = tf.random.stateless_uniform([100], seed=[1, 2], minval=3, maxval=5, dtype="int32").numpy()
        self.assertEqual(sorted(set(numbers.tolist())), [3, 4])
        with self.assertRaisesRegex(ValueError, "integers need maxval"):
            tf.random.uniform([1], dtype="int32")
        tf.random.set_seed(5)
        first = tf.random.normal([3]).numpy()
        tf.random.set_seed(5)
        self.assertEqual(first.tolist(), tf.random.normal([3]).numpy().tolist())


if __name__ == "__main__":
    unittest.main()
