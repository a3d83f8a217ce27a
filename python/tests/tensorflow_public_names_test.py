"""dir() of TensorFlow's modules, messages for names and keywords that are not there, and functions that were added late."""
import pathlib
import tempfile
import types
import unittest

import numpy as np

import gradus.tensorflow as tf
from gradus import _names

MODULES = """audio bitwise config data debugging distribute dtypes errors image io linalg lookup math nest nn random signal strings
summary train""".split()


def complex_of(pairs):
    array = np.asarray(pairs)
    return array[..., 0] + 1j * array[..., 1]


class Listings(unittest.TestCase):
    def test_modules_list_their_own_names(self):
        for module in [tf] + [getattr(tf, name) for name in MODULES]:
            for name in set(dir(module)) - {"keras"}:  # which is another package
                with self.subTest(name=f"{module.__name__}.{name}"):
                    value = getattr(module, name)
                    self.assertFalse(name.startswith("_") or name in ("TABLE", "ops", "np"))
                    if isinstance(value, types.ModuleType):
                        self.assertTrue(module is tf and value.__name__ == f"gradus.tensorflow.{name}")
        for name in ("fill", "TABLE", "ops", "convert_to_tensor"):
            self.assertNotIn(name, [each for module in MODULES for each in dir(getattr(tf, module))])
        for name in ("fill", "zeros", "convert_to_tensor", "math", "function", "keras"):
            self.assertIn(name, dir(tf))

    def test_names_of_other_modules_are_found(self):
        for module, name, place in [(tf.image, "encode_png", "tf.io.encode_png"), (tf.nn, "rfft", "tf.signal.rfft"),
                                    (tf.math, "matmul", "tf.linalg.matmul"), (tf.linalg, "zeros", "tf.zeros")]:
            with self.assertRaisesRegex(AttributeError, f"{name}': it is {place}$"):
                getattr(module, name)
        with self.assertRaisesRegex(AttributeError, "gradus.from_dlpack"):
            tf.experimental.dlpack
        with self.assertRaisesRegex(AttributeError, "GradientTape"):
            tf.autodiff


    def test_attributes_of_tensors_say_what_does_their_work(self):
        v = tf.Variable([1.0, 2.0])
        for name, text in [("assign", r"v\[i\] = value assigns"), ("assign_add", r"v\[i\] = v\[i\] \+ value"),
                           ("flatten", r"the array x.numpy\(\) has it"), ("nonsense", "nonsense'$")]:
            with self.assertRaisesRegex(AttributeError, text):
                getattr(v[1], name)
        with self.assertRaisesRegex(AttributeError, "early_stopping"):
            raise _names.attribute_error("gradus.nn", "EarlyStopping", ["early_stopping", "Dense"])


class Keywords(unittest.TestCase):
    def test_an_unknown_one_names_the_nearest(self):
        data = tf.data.Dataset.range(3)
        for call, text in [(lambda: tf.random.normal([2], std=2.0), "random.normal|normal has no argument `std`.*`stddev`"),
                           (lambda: tf.linspace(0.0, 1.0, numm=3), "linspace has no argument `numm`.*`num`"),
                           (lambda: tf.reduce_mean([1.0], axes=0), "reduce_mean has no argument `axes`.*`axis`"),
                           (lambda: tf.nn.conv2d(1, 2, 3, "SAME", dilation=2), "has no argument `dilation`.*`dilations`"),
                           (lambda: tf.Variable(1.0, nam="x"), "Variable has no argument `nam`.*`name`"),
                           (lambda: data.batch(2, drop=True), "Dataset.batch has no argument `drop`.*`drop_remainder`"),
                           (lambda: tf.data.Dataset.from_tensor_slices(tensor=[1]), "`tensor`; did you mean `tensors`"),
                           (lambda: tf.zeros_like([1.0], foo=1), "has no argument `foo`; it has input, dtype, name")]:
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_mistakes_within_a_function_stay_as_they_are(self):
        def body(x):
            return tf.random.normal(shape=x, nonsense=1) if False else int("a", based=1)
        with self.assertRaisesRegex(TypeError, "based"):
            tf.map_fn(fn=body, elems=tf.ones([2]))
        with self.assertRaisesRegex(TypeError, "missing 1 required"):
            tf.random.normal()


class Files(unittest.TestCase):
    def test_a_missing_file_is_a_not_found_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "none")
            for read in [lambda: tf.io.read_file(path), lambda: list(tf.data.TextLineDataset(path)),
                         lambda: list(tf.data.TFRecordDataset(path)), lambda: tf.io.gfile.GFile(path), lambda: tf.io.gfile.remove(path),
                         lambda: tf.io.gfile.listdir(path), lambda: tf.io.gfile.copy(path, path + "2"),
                         lambda: tf.io.gfile.rename(path, path + "2"), lambda: tf.train.load_checkpoint(path),
                         lambda: tf.train.Checkpoint(v=tf.Variable(1.0)).restore(path), lambda: tf.data.Dataset.load(path),
                         lambda: tf.lookup.TextFileInitializer(path, tf.string, -2, tf.int64, -1)]:
                with self.assertRaises(tf.errors.NotFoundError) as caught:
                    read()
                self.assertIsInstance(caught.exception, OSError)
            with self.assertRaises(FileNotFoundError):
                tf.io.read_file(path)


class Signals(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(1).normal(size=(2, 40)).astype("float32")

    def test_transforms_are_numpys_as_pairs(self):
        image = self.x.reshape(2, 8, 5)
        for ours, numpys in [(tf.signal.rfft(self.x), np.fft.rfft(self.x)), (tf.signal.rfft(self.x, [16]), np.fft.rfft(self.x, 16)),
                             (tf.signal.fft(self.x[..., None]), np.fft.fft(self.x)),
                             (tf.signal.rfft2d(image), np.fft.rfft2(image)),
                             (tf.signal.rfft2d(image, [10, 4]), np.fft.rfft2(image, [10, 4])),
                             (tf.signal.fft2d(np.stack([image, 2 * image], -1)), np.fft.fft2(image + 2j * image))]:
            np.testing.assert_allclose(complex_of(ours), numpys, atol=1e-4)

    def test_inverses(self):
        image = self.x.reshape(2, 5, 8)
        pairs = np.stack([image, 2 * image], -1)
        np.testing.assert_allclose(tf.signal.irfft(tf.signal.rfft(self.x)), self.x, atol=1e-5)
        np.testing.assert_allclose(tf.signal.irfft2d(tf.signal.rfft2d(image)), image, atol=1e-5)
        np.testing.assert_allclose(tf.signal.ifft2d(tf.signal.fft2d(pairs)), pairs, atol=1e-5)
        np.testing.assert_allclose(tf.signal.ifft(tf.signal.fft(pairs)), pairs, atol=1e-5)

    def test_short_time_transforms_come_back(self):
        pairs = tf.signal.stft(self.x, 8, 4)
        self.assertEqual(pairs.shape, (2, 9, 5, 2))
        window = tf.signal.hann_window(8).numpy()
        np.testing.assert_allclose(complex_of(pairs)[0, 3], np.fft.rfft(self.x[0, 12:20] * window), atol=1e-5)
        back = tf.signal.inverse_stft(pairs, 8, 4, window_fn=tf.signal.inverse_stft_window_fn(4))
        np.testing.assert_allclose(back[:, 4:-4], self.x[:, 4:-4], atol=1e-5)


class Layers(unittest.TestCase):
    def test_a_transposed_convolution_is_the_gradient(self):
        random = np.random.default_rng(2)
        y, filters = random.normal(size=(2, 4, 4, 3)).astype("float32"), random.normal(size=(3, 3, 5, 3)).astype("float32")
        x = tf.Variable(np.zeros((2, 8, 8, 5), "float32"))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.conv2d(x, filters, 2, "SAME") * y)
        made = tf.nn.conv2d_transpose(y, filters, [2, 8, 8, 5], 2)
        np.testing.assert_allclose(made, tape.gradient(loss, x), atol=1e-4)
        self.assertEqual(tf.nn.conv1d_transpose(y[0], filters[0], [4, 8, 5], 2, "SAME").shape, (4, 8, 5))

    def test_blocks_and_places(self):
        x = np.arange(2 * 4 * 4 * 1, dtype="float32").reshape(2, 4, 4, 1)
        blocks = tf.nn.space_to_depth(x, 2)
        self.assertEqual(blocks[0, 0, 0].numpy().tolist(), [0, 1, 4, 5])
        self.assertEqual(tf.nn.depth_to_space(blocks, 2).numpy().tolist(), x.tolist())
        largest, places = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")
        self.assertEqual(largest[1, 0, 0].numpy().tolist(), [21])
        self.assertEqual((places[1, 0, 0].numpy().tolist(), places.dtype), ([5], tf.int64))

    def test_statistics(self):
        x = np.random.default_rng(3).normal(size=(5, 4)).astype("float32")
        count, total, squares, shift = tf.nn.sufficient_statistics(x, [0])
        mean, variance = tf.nn.normalize_moments(count, total, squares, shift)
        np.testing.assert_allclose(mean, x.mean(0), atol=1e-6)
        np.testing.assert_allclose(variance, x.var(0), atol=1e-6)
        mean, _ = tf.nn.weighted_moments(x, [0], np.ones((5, 4), "float32"))
        np.testing.assert_allclose(mean, x.mean(0), atol=1e-6)

    def test_ctc_of_one_alignment(self):
        logits = np.random.default_rng(4).normal(size=(2, 1, 3)).astype("float32")
        loss = tf.nn.ctc_loss([[1, 2]], logits, [2], [2])
        rows = logits[:, 0] - np.log(np.exp(logits[:, 0]).sum(-1, keepdims=True))
        np.testing.assert_allclose(loss, [-(rows[0, 1] + rows[1, 2])], rtol=1e-5)
        same = tf.nn.ctc_loss([[1, 2]], logits.transpose(1, 0, 2), [2], [2], logits_time_major=False)
        self.assertEqual(same.numpy().tolist(), loss.numpy().tolist())


if __name__ == "__main__":
    unittest.main()
