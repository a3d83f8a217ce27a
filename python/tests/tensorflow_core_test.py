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
        with self.assertRaisesRegex(AttributeError, "sparse"):
            tf.SparseTensor
        with self.assertRaisesRegex(AttributeError, "graphs and sessions"):
            tf.compat.v1
        with self.assertRaisesRegex(AttributeError, "reduce_sum"):
            tf.reduce_summ


class ConcreteFunctions(unittest.TestCase):
    def test_of_functions_and_methods(self):
        @tf.function
        def scaled(x, k=2):
            return x * k
        class Scales(tf.Module):
            def __init__(self):
                super().__init__()
                self.v = tf.Variable(2.0)

            @tf.function
            def free(self, x):
                return self.v * x

            @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
            def signed(self, x):
                return self.v * x
        rows, number = tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)
        module = Scales()
        for made, given, wanted in (
                (scaled.get_concrete_function(rows), [1.0, 2.0], [2, 4]),
                (scaled.get_concrete_function(rows, 3), [1.0], [3]),
                (scaled.get_concrete_function(rows, k=4), [1.0], [4]),
                (scaled.get_concrete_function(tf.constant([1.0])), [5.0], [10]),
                (module.free.get_concrete_function(number), 3.0, 6),
                (module.signed.get_concrete_function(), 4.0, 8)):
            self.assertEqual(made(tf.constant(given)).tolist(), wanted)
            self.assertEqual(made(x=tf.constant(given)).tolist(), wanted)
        self.assertIs(module.free.__self__, module)
        self.assertEqual(float(module.free(tf.constant(3.0))), 6)
        self.assertIn("free", repr(module.free.get_concrete_function(number)))

    def test_a_method_as_an_argument_is_one_and_the_same(self):
        traces = []

        class Scales:
            @tf.function
            def twice(self, x):
                return 2 * x

        @tf.function
        def applied(f, x):
            traces.append(f)
            return f(x)
        scales = Scales()
        for _ in range(3):
            self.assertEqual(float(applied(scales.twice, tf.constant(1.0))), 2)
        self.assertEqual(len(traces), 1)
        applied(Scales().twice, tf.constant(1.0))
        self.assertEqual(len(traces), 2)

    def test_errors(self):
        @tf.function
        def f(x):
            return x
        made = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
        for given in (tf.constant([[1.0]]), tf.constant([1])):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "does not fit"):
                made(given)
        with self.assertRaisesRegex(TypeError, "f: get_concrete_function: missing a required argument: 'x'"):
            f.get_concrete_function()
        with self.assertRaisesRegex(AttributeError, "explain"):
            made.graph


class Errors(unittest.TestCase):
    def test_a_class_of_tensorflow_catches_its_own_errors_alone(self):
        for name in ("FailedPreconditionError", "UnimplementedError", "AbortedError", "CancelledError"):
            made = getattr(tf.errors, name)
            self.assertFalse(issubclass(tf.errors.InvalidArgumentError, made), name)
            self.assertTrue(issubclass(made, tf.errors.OpError), name)
        self.assertEqual(tf.errors.FailedPreconditionError.error_code, tf.errors.FAILED_PRECONDITION)

    def test_parts_of_strings_beyond_the_end(self):
        for pos in (4, -4):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, f"pos {pos} is out of range"):
                tf.strings.substr("abc", pos, 2)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "3 characters"):
            tf.strings.substr("h\u00e9\u00e9", 4, 1, unit="UTF8_CHAR")
        parts = [tf.strings.substr("abc", *given).numpy() for given in ((3, 2), (-3, 2), (1, -1), (2, 9))]
        self.assertEqual(parts, [b"", b"ab", b"bc", b"c"])


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
