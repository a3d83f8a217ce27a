"""keras.ops whose text here is our own, or that ask TensorFlow's text for sizes, beside NumPy's functions."""
import importlib.util
import os
import unittest
import warnings

import numpy as np

os.environ["KERAS_BACKEND"] = "gradus"
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import keras  # noqa: E402
from keras import ops  # noqa: E402

NAN = np.float32([[1, np.nan, 3, 9], [3, 2, 1, np.nan], [np.nan] * 4])


def same(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


class Numbers(unittest.TestCase):
    def test_quantiles_without_nan(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of rows that have no number
            for method in ("linear", "lower", "higher", "nearest", "midpoint"):
                for axis in (None, 0, 1, (0, 1), -1):
                    for q in (0.3, [0.2, 0.9]):
                        for keepdims in (False, True):
                            options = {"axis": axis, "method": method, "keepdims": keepdims}
                            with self.subTest(q=q, **options):
                                same(ops.nanquantile(NAN, q, **options), np.nanquantile(NAN, q, **options))
        same(gradus.function(lambda x: ops.nanquantile(x, 0.5, axis=1))(NAN[:2]), np.nanquantile(NAN[:2], 0.5, axis=1))
        same(ops.nanmedian(np.int32([3, 1, 2])), 2)

    def test_reductions_over_no_axes(self):
        for name in ("sum", "prod", "max", "min", "mean", "var", "std", "count_nonzero", "all", "any", "nansum", "nanmax"):
            same(getattr(ops, name)(NAN[:1, 2:], axis=()), getattr(np, name)(NAN[:1, 2:], axis=()))
            same(getattr(ops, name)(NAN[:1, 2:], axis=(1,)), getattr(np, name)(NAN[:1, 2:], axis=(1,)))

    def test_elements_each_once(self):
        x = np.array([[3, 1], [3, 1], [0, 2]])
        for axis in (None, 0, 1):
            found = ops.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            for a, b in zip(found, expected, strict=True):
                same(a, b.reshape(np.shape(a)))
        values, counts = ops.unique(x, return_counts=True, size=6, fill_value=-1)
        self.assertEqual((values.tolist(), counts.tolist()), ([0, 1, 2, 3, -1, -1], [1, 2, 1, 2, 0, 0]))
        self.assertEqual(ops.unique(x, size=2, axis=1).shape, (3, 2))

    def test_histograms_also_in_a_traced_function(self):
        x = np.float32([1, 2, 2, 3.5, 9])
        for range in (None, (1, 4)):
            def histogram(x, range=range):
                return ops.histogram(x, bins=4, range=range)
            for f in (histogram, gradus.function(histogram)):
                for found, expected in zip(f(x), np.histogram(x, 4, range)):
                    same(found, expected)

    def test_partitions_averages_and_products(self):
        x = np.random.default_rng(0).random((3, 5)).astype("float32")
        order = ops.convert_to_numpy(ops.argpartition(x, 2, axis=1))
        kept = np.take_along_axis(x, order, 1)
        self.assertTrue((kept[:, :3].max(1) <= kept[:, 3:].min(1)).all())
        same(ops.average(x, axis=1, weights=np.arange(5.0)), np.average(x, axis=1, weights=np.arange(5.0)))
        same(ops.corrcoef(x), np.corrcoef(x))
        same(ops.angle(np.float32([-1, 0, 2])), [np.pi, 0, 0])
        same(ops.eye(3, 4, k=1), np.eye(3, 4, k=1))
        same(ops.rot90(x, k=-1), np.rot90(x, -1))
        self.assertEqual(ops.linspace(0, 1, num=0).shape, (0,))


class Images(unittest.TestCase):
    def test_affine_maps_take_the_pixels_that_they_name(self):
        image = np.random.default_rng(0).random((1, 4, 5, 2)).astype("float32")
        moved = np.float32([1, 0, 2, 0, 1, -1, 0, 0])  # pixel (y, x) is that of (y - 1, x + 2)
        rows, columns = np.arange(4) - 1, np.arange(5) + 2
        folded = {"nearest": lambda i, n: np.clip(i, 0, n - 1), "wrap": lambda i, n: i % n,
                  "reflect": lambda i, n: np.pad(np.arange(n), n, "symmetric")[i + n],
                  "mirror": lambda i, n: np.pad(np.arange(n), n - 1, "reflect")[i + n - 1]}
        for mode, fold in folded.items():
            for interpolation in ("nearest", "bilinear"):
                found = ops.image.affine_transform(image, moved, interpolation, mode)
                same(found, image[:, fold(rows, 4)][:, :, fold(columns, 5)])
        found = ops.image.affine_transform(image, moved, fill_mode="constant", fill_value=7.0)
        expected = np.full_like(image, 7)
        expected[:, 1:, :3] = image[:, :3, 2:]
        same(found, expected)

    def test_pixels_between_and_their_gradients(self):
        image = np.float32([[[0.0], [4.0]], [[8.0], [12.0]]])[None]
        half = np.float32([1, 0, 0.25, 0, 1, 0.5, 0, 0])
        with gradus.GradientTape() as tape:
            x = gradus.constant(image)
            tape.watch(x)
            y = ops.image.affine_transform(x, half, fill_mode="nearest")
            corner = y[0, 0, 0, 0]
        self.assertAlmostEqual(corner.item(), 5.0)
        same(tape.gradient(corner, x)[0, :, :, 0], [[0.375, 0.125], [0.375, 0.125]])
        self.assertEqual(ops.image.affine_transform(np.uint8(image), half, fill_mode="nearest").dtype.name, "uint8")

    def test_float64_stays(self):
        x = ops.convert_to_tensor(np.full((2, 3), 1 / 3))
        for result in (x + x, ops.multiply(x, np.float32(1)), ops.matmul(x, ops.transpose(x)), ops.maximum(x, 0), ops.arctan2(x, x),
                       ops.add(x, np.ones(3, np.int64)), keras.layers.Dense(4, dtype="float64")(np.ones((2, 3), np.float32))):
            self.assertEqual(keras.backend.standardize_dtype(result.dtype), "float64")
        np.testing.assert_allclose(np.asarray(ops.matmul(x, ops.transpose(x))), np.full((2, 2), 1 / 3), rtol=1e-15)
        self.assertEqual(ops.add(ops.ones(3), 1.5).dtype.name, "float32")


if __name__ == "__main__":
    unittest.main()
