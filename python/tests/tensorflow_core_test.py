"""gradus.tensorflow: programs of TensorFlow, with NumPy's values."""
import unittest
import warnings

import numpy as np

import gradus.tensorflow as tf


class Tensors(unittest.TestCase):
    def test_dtypes_are_those_of_tensorflow(self):
        self.assertEqual(tf.reduce_mean(tf.constant([1, 2, 4])).numpy(), 2)
        self.assertEqual(tf.argmax([[1.0, 3.0]], axis=1).dtype, tf.int64)
        self.assertEqual((tf.constant(3) / 2).dtype, tf.float64)
        self.assertEqual(tf.zeros([2, 3]).shape.as_list(), [2, 3])
        self.assertEqual(tf.int8.max, 127)
        with self.assertRaises(ValueError):
            tf.convert_to_tensor(tf.constant(1.0), tf.float64)

    def test_variables_are_instances(self):
        v = tf.Variable([1, 2], name="v", dtype=tf.float32)
        self.assertIsInstance(v, tf.Variable)
        self.assertEqual((v.name, v.dtype), ("v", tf.float32))

    def test_missing_names_say_why(self):
        with self.assertRaisesRegex(AttributeError, "ragged"):
            tf.RaggedTensor
        with self.assertRaisesRegex(AttributeError, "reduce_sum"):
            tf.reduce_summ


class Gradients(unittest.TestCase):
    def test_of_nests_and_unconnected(self):
        v, w = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            y = v * v
        found = tape.gradient(y, [v, w])
        np.testing.assert_array_equal(found[0].numpy(), [2, 4])
        self.assertIsNone(found[1])
        self.assertEqual(tape.gradient(y, w, unconnected_gradients=tf.UnconnectedGradients.ZERO).numpy(), 0)
        np.testing.assert_array_equal(tape.jacobian(y, v).numpy(), np.diag([2, 4]))


class Functions(unittest.TestCase):
    def test_signature_takes_lists(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(x):
            return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x / 2)
        self.assertEqual([f([1.0, 2.0]).tolist(), f([-1.0]).tolist()], [[2, 4], [-0.5]])

    def test_loops_and_maps(self):
        self.assertEqual(tf.scan(lambda a, x: a + x, tf.range(4), initializer=tf.constant(0)).tolist(), [0, 1, 3, 6])
        self.assertEqual(tf.map_fn(lambda x: x * x, tf.range(3)).tolist(), [0, 1, 4])
        self.assertEqual(tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])[0].item(), 3)


class Data(unittest.TestCase):
    def test_stages(self):
        a = np.arange(6.0)
        data = tf.data.Dataset.from_tensor_slices((a, a)).map(lambda x, y: (x * 2, y)).batch(4).prefetch(tf.data.AUTOTUNE)
        self.assertEqual(len(data), 2)
        np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in data]), a * 2)
        windows = tf.data.Dataset.range(5).window(2).flat_map(lambda window: window.batch(2))
        self.assertEqual([x.tolist() for x in windows], [[0, 1], [2, 3], [4]])

    def test_untraceable_functions_run_in_python(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data = tf.data.Dataset.range(3).map(lambda x: x.numpy() + 1)
            self.assertEqual([x.item() for x in data], [1, 2, 3])
        self.assertEqual(len(said), 1)


class Others(unittest.TestCase):
    def test_nest_and_module(self):
        self.assertEqual(tf.nest.flatten({"b": 2, "a": [1, (3,)]}), [1, 3, 2])

        class Net(tf.Module):
            def __init__(self):
                super().__init__()
                self.layers = [tf.Variable(1.0), tf.Variable(2.0, trainable=False)]
        self.assertEqual([len(Net().variables), len(Net().trainable_variables)], [2, 1])

    def test_generator_repeats_itself(self):
        a, b = (tf.random.Generator.from_seed(3) for _ in range(2))
        first = a.normal([2]).tolist()
        self.assertEqual(first, b.normal([2]).tolist())
        self.assertNotEqual(first, a.normal([2]).tolist())


if __name__ == "__main__":
    unittest.main()
