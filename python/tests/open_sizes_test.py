"""tf.shape(x)[0] and x.shape[0] as sizes while the size is open: in functions, in maps of data sets and in models."""
import unittest
import warnings

import numpy as np

import gradus
import gradus.tensorflow as tf
from gradus import nn

# Programs of x [b, 2, 3] and its first size b.
PROGRAMS = {
    "reshape to a list": lambda x, b: tf.reshape(x, [b, -1]),
    "reshape to a tuple": lambda x, b: tf.reshape(x, (b, 6)),
    "reshape by a method": lambda x, b: x.reshape([b, 6]),
    "reshape to a stack": lambda x, b: tf.reshape(x, tf.stack([b, -1])),
    "reshape to a concat": lambda x, b: tf.reshape(x, tf.concat([[b], [-1]], 0)),
    "a product of sizes": lambda x, b: tf.reshape(x, [b * 2, -1]),
    "a product of two open sizes": lambda x, b: tf.reshape(x, [b * tf.shape(x)[1], 3]),
    "unstacked sizes": lambda x, b: (lambda s: tf.reshape(x, [s[0], s[1] * s[2]]))(tf.unstack(tf.shape(x))),
    "a slice of the shape": lambda x, b: tf.reshape(x, tf.concat([tf.shape(x)[:1], [6]], 0)),
    "zeros": lambda x, b: tf.zeros([b, 2]),
    "zeros of a shape": lambda x, b: tf.zeros(tf.shape(x)),
    "ones": lambda x, b: tf.ones((b, 2), "int32"),
    "fill": lambda x, b: tf.fill([b, 2], 1.5),
    "random.normal": lambda x, b: tf.random.normal([b, 2]),
    "random.normal of a shape": lambda x, b: tf.random.normal(tf.shape(x)),
    "random.uniform": lambda x, b: tf.random.uniform(shape=[b, 1], minval=0, maxval=1),
    "random.truncated_normal": lambda x, b: tf.random.truncated_normal([b]),
    "tile": lambda x, b: tf.tile(tf.ones([1, 2]), [b, 1]),
    "tile of a stack": lambda x, b: tf.tile(tf.ones([1, 2]), tf.stack([b, 2])),
    "repeat": lambda x, b: tf.repeat(tf.ones([1, 2]), b, axis=0),
    "broadcast_to": lambda x, b: tf.broadcast_to(tf.range(2), [b, 2]),
    "eye": lambda x, b: tf.eye(b),
    "eye of rows and columns": lambda x, b: tf.eye(b, b + 1),
    "eyes": lambda x, b: tf.eye(2, batch_shape=[b]),
    "range": lambda x, b: tf.range(b),
    "slice": lambda x, b: tf.slice(x, [0, 0, 0], [b - 1, 1, 1]),
    "slice from a size": lambda x, b: tf.slice(x, [b - 1, 0, 0], [1, 2, 3]),
    "a slice of Python": lambda x, b: x[:b - 1],
    "half": lambda x, b: x[:b // 2],
    "one_hot": lambda x, b: tf.one_hot(tf.range(2), b),
    "sequence_mask": lambda x, b: tf.sequence_mask([1, 2], b),
    "pad": lambda x, b: tf.pad(x, [[0, 9 - b], [0, 0], [0, 0]]),
    "pad by a size": lambda x, b: tf.pad(tf.ones([1]), [[0, b]]),
    "segments": lambda x, b: tf.math.unsorted_segment_sum(tf.ones([2]), [0, 1], b),
    "dropout's noise": lambda x, b: tf.nn.dropout(x, 0.0, noise_shape=[b, 1, 1]),
    "a mean": lambda x, b: tf.reduce_sum(x) / tf.cast(b, tf.float32),
}
RANDOM = ("random",)
SIZES = {"tf.shape": lambda x: tf.shape(x)[0], "x.shape": lambda x: x.shape[0]}
OPEN = tf.TensorSpec([None, 2, 3])


def elements(n):
    return np.random.default_rng(n).normal(size=(n, 2, 3)).astype("float32")


class Functions(unittest.TestCase):
    def test_values_are_those_of_eager_calls(self):
        for name, program in PROGRAMS.items():
            for way, size in SIZES.items():
                if way == "x.shape" and ("stack" in name or "concat" in name or name == "a mean"):
                    continue  # an Extent is no tensor
                function = tf.function(lambda x, program=program, size=size: program(x, size(x)), input_signature=[OPEN])
                for n in (3, 5, 8):
                    with self.subTest(program=name, size=way, n=n):
                        x = tf.constant(elements(n))
                        made, expected = function(x), program(x, n)
                        self.assertEqual(made.shape, expected.shape)
                        if not name.startswith(RANDOM):
                            self.assertEqual(made.numpy().tolist(), expected.numpy().tolist())

    def test_several_forms_in_one_program(self):
        @tf.function(input_signature=[OPEN])
        def program(x):
            b = tf.shape(x)[0]
            y = tf.reshape(x, [b, -1]) + tf.tile(tf.random.normal([1, 6]), [b, 1])
            return y[:b - 1] + tf.zeros([b - 1, 6])
        for n in range(2, 9):
            self.assertEqual(program(elements(n)).shape, (n - 1, 6))

    def test_gradients_pass(self):
        w = tf.Variable(2.0)

        @tf.function(input_signature=[OPEN])
        def gradient(x):
            with tf.GradientTape() as tape:
                b = tf.shape(x)[0]
                loss = tf.reduce_sum(tf.tile(tf.reshape(w, [1, 1]), [b, 2]) * tf.reshape(x, [b, -1])[:, :2])
            return tape.gradient(loss, w)
        for n in (3, 4, 6):
            x = elements(n)
            self.assertAlmostEqual(float(gradient(x)), float(x[:, 0, :2].sum()), places=4)

    def test_a_computed_value_as_a_size_is_refused_with_the_way_out(self):
        @tf.function(input_signature=[OPEN])
        def program(x):
            return tf.zeros([tf.cast(tf.reduce_sum(x), tf.int32), 2])
        with self.assertRaisesRegex(ValueError, r"a size is an int, x.shape\[i\], tf.shape\(x\)\[i\].*give it as an int"):
            program(elements(3))

    def test_negative_sizes_and_other_mistakes_are_refused(self):
        def made(shape):
            return tf.function(lambda x: tf.zeros(shape(tf.shape(x)[0])), input_signature=[OPEN])
        for shape in (lambda b: [-5, b], lambda b: tf.stack([b, -7])):
            with self.assertRaisesRegex(ValueError, "negative"):
                made(shape)(elements(3))
        with self.assertRaises((TypeError, ValueError)):
            made(lambda b: [tf.cast(b, tf.float32)])(elements(3))
        with self.assertRaises((TypeError, ValueError)):
            made(lambda b: [[b]])(elements(3))
        with self.assertRaises(ValueError):
            tf.function(lambda x: tf.tile(x, [-4, 1, 1]), input_signature=[OPEN])(elements(3))

    def test_eager_tensors_are_sizes_too(self):
        n = tf.constant(3)
        self.assertEqual(tf.eye(n).shape, (3, 3))
        self.assertEqual(tf.zeros([n, 2]).shape, (3, 2))
        self.assertEqual(tf.tile(tf.ones([1]), [n]).shape, (3,))
        self.assertEqual(tf.tile(tf.ones([1, 1]), tf.constant([2, 3])).shape, (2, 3))
        self.assertEqual(gradus.ops.reshape(tf.range(6), tf.constant([2, 3])).shape, (2, 3))


class Maps(unittest.TestCase):
    def test_elements_of_several_sizes(self):
        data = tf.data.Dataset.from_tensor_slices(elements(11)).batch(4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no function runs in Python
            for name, program in PROGRAMS.items():
                if name == "half":
                    continue  # a quotient is a number, for which a map runs in Python
                with self.subTest(program=name):
                    made = [tuple(y.shape) for y in data.map(lambda x, program=program: program(x, tf.shape(x)[0]))]
                    self.assertEqual(made, [tuple(program(tf.zeros([n, 2, 3]), n).shape) for n in (4, 4, 3)])


class Models(unittest.TestCase):
    def test_call_uses_the_shape_of_its_input(self):
        class Net(nn.Model):
            def __init__(self):
                super().__init__()
                self.dense = nn.Dense(4)

            def call(self, x):
                b = tf.shape(x)[0]
                h = tf.reshape(self.dense(x), [b, 2, 2])
                return h[:, :, 0] + 0.0 * tf.random.normal(tf.shape(h[:, :, 0])) + tf.zeros([b, 2])
        x, y = np.ones([20, 3], "float32"), np.zeros([20, 2], "float32")
        model = Net()
        model.compile("sgd", "mse")
        losses = model.fit(x, y, batch_size=8, epochs=2, verbose=0)["loss"]
        self.assertLess(losses[1], losses[0])
        self.assertEqual(model.predict(x).shape, (20, 2))


if __name__ == "__main__":
    unittest.main()
