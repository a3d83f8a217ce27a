"""Keras's layers in maps of data sets: batches of any size, layers that draw, filters."""
import importlib.util
import os
import unittest
import warnings

if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
os.environ["KERAS_BACKEND"] = "gradus"
import keras_gradus  # noqa: E402, F401

import gradus.tensorflow as tf  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

IMAGES = np.random.default_rng(0).random((7, 4, 6, 3)).astype("float32")
ROWS = np.random.default_rng(1).normal(size=(7, 3)).astype("float32")


def batches(array, size=3):
    return tf.data.Dataset.from_tensor_slices(array).batch(size)


def together(dataset):
    return np.concatenate([np.asarray(each) for each in dataset])


class Maps(unittest.TestCase):
    def test_results_are_those_of_the_layer(self):
        normal = layers.Normalization()
        normal.adapt(ROWS)
        codes = np.arange(7)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for layer, data in [(normal, ROWS), (layers.Discretization([-0.5, 0.5], output_mode="one_hot"), ROWS), (layers.Dense(4), ROWS),
                                (layers.Rescaling(2.0, 1.0), IMAGES), (layers.Resizing(3, 3), IMAGES), (layers.CenterCrop(2, 2), IMAGES),
                                (layers.CategoryEncoding(7, output_mode="one_hot"), codes), (layers.Flatten(), IMAGES),
                                (layers.IntegerLookup(vocabulary=[4, 2], mask_token=0), codes), (layers.Conv2D(2, 3), IMAGES),
                                (layers.IntegerLookup(vocabulary=[4, 2], num_oov_indices=0, mask_token=0), codes // 2 * 2 % 6),
                                (layers.Hashing(5), codes), (layers.Hashing(5, output_mode="one_hot", salt=3), codes)]:
                with self.subTest(layer=layer.name):
                    wanted = np.asarray(layer(data))
                    np.testing.assert_allclose(together(batches(data).map(layer)), wanted, rtol=1e-5, atol=1e-6)
                    np.testing.assert_allclose(together(batches(data, 7).map(layer)), wanted, rtol=1e-5, atol=1e-6)

    def test_layers_that_draw_do_so_for_each_element(self):
        for layer in (layers.RandomFlip(), layers.RandomRotation(0.3), layers.RandomZoom(0.3), layers.RandomContrast(0.5),
                      layers.RandomTranslation(0.3, 0.3), layers.GaussianNoise(0.5), layers.Dropout(0.5)):
            with self.subTest(layer=layer.name), warnings.catch_warnings():
                warnings.simplefilter("error")
                keras.utils.set_random_seed(3)
                data = batches(np.repeat(IMAGES[:1], 7, 0)).map(lambda x, layer=layer: layer(x, training=True))
                first = together(data)
                self.assertEqual(first.shape, IMAGES.shape)
                self.assertFalse(np.array_equal(first[:3], first[3:6]), "the batches are the same images")
                self.assertFalse(np.array_equal(first, together(data)), "a second pass draws anew")
                keras.utils.set_random_seed(3)
                again = batches(np.repeat(IMAGES[:1], 7, 0)).map(lambda x, layer=layer: layer(x, training=True))
                np.testing.assert_array_equal(together(again), first)

    def test_two_draws_of_a_layer_differ(self):
        generator = keras.random.SeedGenerator(5)

        def twice(x):
            return keras.random.uniform((4,), seed=generator), keras.random.uniform((4,), seed=generator)
        one, two = next(iter(batches(ROWS).map(twice)))
        self.assertFalse(np.array_equal(one, two))
        same = batches(ROWS).map(lambda x: keras.random.uniform((4,), seed=7))
        np.testing.assert_array_equal(*list(same)[:2])

    def test_a_training_on_mapped_images(self):
        augment = keras.Sequential([layers.RandomFlip(), layers.RandomContrast(0.1)])
        data = tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(7) % 2)).batch(3)
        model = keras.Sequential([layers.Flatten(), layers.Dense(1, activation="sigmoid")])
        model.compile("adam", "binary_crossentropy")
        history = model.fit(data.map(lambda x, y: (augment(x, training=True), y)), epochs=2, verbose=0, validation_data=data)
        self.assertTrue(np.isfinite(history.history["loss"] + history.history["val_loss"]).all())

    def test_filters_and_mistakes(self):
        large = tf.data.Dataset.from_tensor_slices(ROWS).filter(lambda row: keras.ops.sum(row) > 0)
        self.assertEqual(len(list(large)), int((ROWS.sum(1) > 0).sum()))
        counted = layers.BatchNormalization()
        counted.build((None, 3))
        with self.assertRaisesRegex(ValueError, "assigns variable"):
            list(batches(ROWS).map(lambda x: counted(x, training=True)))
        with self.assertRaisesRegex(ValueError, "rank|dim|shape"):
            list(batches(ROWS).map(layers.Conv2D(2, 3)))


if __name__ == "__main__":
    unittest.main()
