"""NumPy's reductions of tensors and Variables, which call methods of tensors with NumPy's own arguments."""
import unittest

import numpy as np

import gradus.tensorflow as tf


class Reductions(unittest.TestCase):
    def test_values_and_dtypes_are_numpys(self):
        random = np.random.default_rng(0)
        for array in (random.normal(size=(3, 4)).astype("float32"), random.integers(-5, 5, (3, 4), "int32"),
                      random.integers(0, 9, (3, 4), "uint8"), random.random((3, 4)) > 0.5):
            for name in ("sum", "mean", "max", "min", "prod", "any", "all", "std", "var", "argmax", "median", "cumsum"):
                for options in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}):
                    if options and (name in ("argmax", "cumsum", "median") and options.get("axis") != 0 or name == "cumsum"):
                        continue
                    for tensor in (tf.constant(array), tf.Variable(array)):
                        with self.subTest(name=name, dtype=array.dtype, options=options):
                            made, expected = np.asarray(getattr(np, name)(tensor, **options)), getattr(np, name)(array, **options)
                            np.testing.assert_allclose(made, expected, rtol=1e-5)
                            self.assertEqual(made.shape, np.shape(expected))
                            if name in ("sum", "mean", "max", "min", "prod", "any", "all"):
                                self.assertEqual(made.dtype, np.asarray(expected).dtype)

    def test_of_comparisons(self):
        p, y = tf.constant([1, 2, 3]), tf.constant([1, 0, 3])
        self.assertAlmostEqual(float(np.mean(p == y)), 2 / 3)
        self.assertEqual(int(np.sum(p == y)), 2)

    def test_dtype_and_what_is_refused(self):
        x = tf.constant([1.5, 2.5])
        self.assertEqual(np.sum(x, dtype="float64").dtype, tf.float64)
        with self.assertRaisesRegex(TypeError, "a result is a tensor of its own"):
            np.sum(x, out=np.zeros(()))
        with self.assertRaisesRegex(TypeError, r"np.sum\(x.numpy\(\), where"):
            np.sum(x, where=[True, False])

    def test_methods_stay_the_engines_own(self):
        x = tf.constant([1, 2], tf.int8)
        self.assertEqual(x.sum().dtype, tf.int8)
        with self.assertRaisesRegex(ValueError, "cast"):
            x.mean()


if __name__ == "__main__":
    unittest.main()
