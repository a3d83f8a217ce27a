"""Values and arguments of gradus.tensorflow: what was taken and ignored, or gave another value than TensorFlow."""
import os

import gradus
import gradus.tensorflow as tf
import numpy as np
from gradus import nn

X = np.float32([[1, -2, 3], [4, 5, -6]])


class Numbers(tf.test.TestCase):
    def test_reductions_over_no_axes_leave_the_elements(self):
        x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
        for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_logsumexp):
            for axis in ([], ()):
                np.testing.assert_allclose(f(x, axis=axis).numpy(), x.numpy(), rtol=1e-6, err_msg=f.__name__)
        np.testing.assert_allclose(tf.math.reduce_euclidean_norm(x, []).numpy(), abs(x.numpy()))
        for f in (tf.math.reduce_std, tf.math.reduce_variance):
            np.testing.assert_allclose(f(x, axis=[]).numpy(), np.zeros((2, 2)))
        self.assertEqual(tf.reduce_all(x > 0, axis=[]).numpy().tolist(), [[True, False], [True, True]])
        self.assertEqual(tf.math.count_nonzero(x, axis=[]).numpy().tolist(), [[1, 1], [1, 1]])
        self.assertEqual(float(tf.reduce_sum(x)), 6.0)

    def test_division_of_integers(self):
        for x, y, dtype in (([3, 4], [2, 8], "float64"), (np.int8([3, 4]), np.int8([2, 8]), "float32"),
                            (np.uint16([3, 4]), [2, 8], "float32"), (3, 2, "float64"), (np.int64([3]), [2], "float64")):
            found = tf.divide(x, y)
            self.assertEqual(found.dtype.name, dtype)
            self.assertAllClose(found, np.asarray(x) / np.asarray(y))
        self.assertEqual(tf.reduce_mean([1, 2, 4]).item(), 2)
        self.assertEqual(tf.reduce_mean([[1, 2], [4, 9]], axis=0).dtype, tf.int32)

    def test_gather_and_confusion_have_the_defaults_of_tensorflow(self):
        x = tf.reshape(tf.range(6), [2, 3])
        self.assertEqual(tf.gather(x, [[0], [1]], batch_dims=1).tolist(), [[0], [4]])
        self.assertEqual(tf.gather(x, [1]).tolist(), [[3, 4, 5]])
        self.assertEqual(tf.gather(x, [1], axis=-1).tolist(), [[1], [4]])
        self.assertEqual(tf.math.confusion_matrix([0, 1, 2], [1, 1, 0]).tolist(), [[0, 1, 0], [0, 1, 0], [1, 0, 0]])
        weighted = tf.math.confusion_matrix([0, 1], [1, 1], weights=[0.5, 0.25], dtype=tf.float32)
        self.assertEqual(weighted.tolist(), [[0, 0.5], [0, 0.25]])

    def test_serialized_tensors_of_all_dtypes(self):
        for dtype in (tf.bfloat16, tf.float16, tf.float64, tf.int8, tf.uint64, tf.bool):
            x = tf.cast([0, 1, 1], dtype)
            self.assertEqual(tf.io.parse_tensor(tf.io.serialize_tensor(x), dtype).tolist(), x.tolist())

    def test_assertions_have_their_words(self):
        with self.assertRaisesRegex(ValueError, "Assert: too many: 3"):
            tf.debugging.Assert(False, ["too many", tf.constant(3)])
        with self.assertRaisesRegex(ValueError, "no boolean holds"):
            tf.case([(tf.constant(False), lambda: 1)])

    def test_norms_of_matrices(self):
        for axis in ((0, 1), (1, 0), [-2, -1]):
            for ord_, named in ((1, 1), (2, 2), (np.inf, np.inf), ("fro", "fro"), ("euclidean", "fro")):
                for keepdims in (False, True):
                    self.assertAllClose(tf.norm(X, ord_, axis, keepdims), np.linalg.norm(X, named, tuple(axis), keepdims), 1e-5, 1e-5)
        self.assertAllClose(tf.norm(X, 1, axis=-1), np.abs(X).sum(-1))
        for wrong in (dict(ord=3, axis=(0, 1)), dict(ord="fro"), dict(ord=-1, axis=0)):
            with self.assertRaises(ValueError):
                tf.norm(X, **wrong)

    def test_whole_numbers_are_counted(self):
        for kwargs, found in (({}, [1, 2, 0, 1]), ({"minlength": 6}, [1, 2, 0, 1, 0, 0]), ({"maxlength": 2}, [1, 2]),
                              ({"weights": [1.0, 0.5, 0.25, 4.0]}, [0.5, 1.25, 0, 4.0]),
                              ({"minlength": 4, "maxlength": 4, "binary_output": True}, [1, 1, 0, 1])):
            self.assertAllClose(tf.math.bincount([1, 0, 1, 3], **kwargs), found)
        rows = np.int64([[1, 0, 1], [3, 3, 3]])
        self.assertAllEqual(tf.math.bincount(rows, axis=-1), [[1, 2, 0, 0], [0, 0, 0, 3]])
        self.assertAllEqual(tf.math.bincount(rows), [1, 2, 0, 3])
        self.assertAllEqual(tf.math.bincount(np.int32([]), minlength=2), [0, 0])
        fixed = tf.function(lambda x: tf.math.bincount(x, minlength=4, maxlength=4))
        self.assertAllEqual(fixed(tf.constant([1, 0, 1, 3])), [1, 2, 0, 1])
        for axis, x in ((None, [1, 3]), (-1, [[1, 0], [3, 2]])):
            traced = tf.function(lambda x, axis=axis: tf.math.bincount(x, minlength=4, axis=axis))
            self.assertAllEqual(traced(tf.constant(x)), tf.math.bincount(x, axis=axis))
            with self.assertRaises(tf.errors.OutOfRangeError):
                traced(tf.constant(x) + 1).numpy()
        for wrong in (dict(arr=[-1]), dict(arr=[1], axis=1), dict(arr=[1], weights=[1.0], binary_output=True)):
            with self.assertRaises(ValueError):
                tf.math.bincount(**wrong)

    def test_slices_behind_batch_dimensions(self):
        x, places = np.arange(12).reshape(2, 2, 3), [[1, 0, 1], [0, 0, 1]]
        taken = np.stack([row[place] for row, place in zip(x, places)])
        self.assertAllEqual(tf.gather(x, places, batch_dims=1), taken)
        self.assertAllEqual(tf.gather(x, places, batch_dims=-1), taken)
        self.assertAllEqual(tf.gather(x, [1, 0]), x[[1, 0]])

    def test_elements_each_once(self):
        y, idx = tf.unique([3, 1, 1])
        self.assertEqual((y.tolist(), idx.tolist()), ([3, 1], [0, 1, 1]))
        y, idx, count = tf.unique_with_counts([3, 1, 1])
        self.assertEqual((y.tolist(), idx.tolist(), count.tolist()), ([3, 1], [0, 1, 1], [1, 2]))
        self.assertAllEqual(tf.repeat([1, 2], [2]), [1, 1, 2, 2])
        self.assertAllEqual(tf.round([1, 2]), [1, 2])
        self.assertAllClose(tf.linspace(tf.constant([0.0, 1.0]), tf.constant([4.0, 5.0]), np.int64(3)), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(tf.linspace(tf.constant([0.0, 1.0]), tf.constant([4.0, 5.0]), 0, axis=1).shape, (2, 0))

    def test_sizes_that_are_tensors(self):
        self.assertAllEqual(tf.math.top_k([1.0, 3.0, 2.0], k=tf.constant(2)).indices, [1, 2])

    def test_pixels_taken_as_they_are_have_no_wider_window(self):
        image = np.float32(np.arange(32).reshape(1, 4, 4, 2))
        for method in ("nearest", "area"):
            self.assertAllEqual(tf.image.resize(image, [2, 2], method, antialias=True), tf.image.resize(image, [2, 2], method))

    def test_texts_that_are_no_numbers(self):
        self.assertAllEqual(tf.strings.to_number(["12", "-3"], tf.int32), [12, -3])
        for text, dtype in (("1_000", tf.int32), ("1_0.5", tf.float32), (str(2**31), tf.int32), (str(2**63), tf.int64), ("a", tf.int32)):
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.strings.to_number(text, dtype)


    def test_numbers_that_do_not_fit_are_refused(self):
        for values, dtype in (([2**40], tf.int32), ([1, -1], tf.uint8), ([[300]], tf.int8), ([2**31], tf.int32)):
            with self.assertRaises(tf.errors.OutOfRangeError):
                tf.constant(values, dtype)
        self.assertEqual(tf.constant([2**31 - 1, -2**31], tf.int32).tolist(), [2**31 - 1, -2**31])
        self.assertEqual(tf.constant([255, 0], tf.uint8).tolist(), [255, 0])

    def test_numbers_of_numpy_have_their_dtype(self):
        self.assertEqual(tf.constant(np.float64(0.1)).dtype, tf.float64)
        self.assertEqual(tf.constant(0.1).dtype, tf.float32)
        self.assertEqual((tf.constant(1.0) * np.float64(2)).dtype, tf.float32)
        traces = []

        @tf.function
        def f(x, rate):
            traces.append(1)
            return x * rate
        for _ in range(5):
            self.assertAllClose(f(tf.constant(2.0), np.float64(0.5)), 1.0)
        self.assertEqual(len(traces), 1)
        self.assertAllClose(f(tf.constant(2.0), np.float64(2)), 4.0)

    def test_shapes_may_be_tensors_and_arrays(self):
        for kind in (tf.constant, np.array, lambda v: np.array(v, np.int64), lambda v: tf.constant(v, tf.int64), tf.TensorShape, list):
            self.assertEqual(tf.zeros(kind([2, 3])).shape, (2, 3))
            self.assertEqual(tf.reshape(X, kind([3, 2])).shape, (3, 2))
            self.assertEqual(tf.reshape(X, kind([6])).shape, (6,))
            self.assertEqual(tf.random.normal(kind([2, 3])).shape, (2, 3))
            self.assertEqual(tf.broadcast_to(tf.constant(1.0), kind([2])).shape, (2,))
        for wrong in (tf.constant([1.5]), np.ones([1, 1], int), np.float32([2])):
            with self.assertRaises((TypeError, ValueError)):
                tf.zeros(wrong)

    def test_no_number_of_threads_means_all(self):
        threading, before = tf.config.threading, gradus.num_threads()
        try:
            threading.set_intra_op_parallelism_threads(0)
            self.assertEqual(threading.get_intra_op_parallelism_threads(), len(os.sched_getaffinity(0)))
        finally:
            gradus.set_num_threads(before)

    def test_each_rate_of_a_gamma_distribution_has_its_draw(self):
        for seed in (None, 1):
            for alpha, beta, shape in ((2.0, [1.0, 2.0, 4.0], [3]), ([[2.0], [3.0]], [1.0, 2.0, 4.0], [2, 3])):
                found = tf.random.gamma([5], alpha, beta, seed=seed).numpy()
                self.assertEqual(list(found.shape), [5, *shape])
                scaled = found * np.float32(beta)
                self.assertEqual(len(np.unique(scaled)), scaled.size)
        tf.random.set_seed(3)
        plain = tf.random.gamma([5], [2.0, 2.0], seed=1).numpy()
        tf.random.set_seed(3)
        self.assertAllClose(tf.random.gamma([5], 2.0, [1.0, 4.0], seed=1), plain / np.float32([1, 4]))

    def test_masks_of_no_sequences(self):
        self.assertEqual(tf.sequence_mask(np.zeros([0], int)).shape, (0, 0))
        self.assertEqual(tf.sequence_mask(np.zeros([2, 0], int)).shape, (2, 0, 0))

    def test_assertions_on_elements_that_are_close(self):
        self.assertNotAllEqual([1.0, 2.0], [1.0, 2.0000002])
        with self.assertRaises(AssertionError):
            self.assertNotAllEqual([1.0, 2.0], [1.0, 2.0])

    def test_dropout_by_a_seed(self):
        for shape in (None, (2, 1)):
            found = tf.nn.dropout(np.ones([2, 50], np.float32), 0.5, noise_shape=shape, seed=1).numpy()
            self.assertEqual(sorted(set(found.ravel().tolist()) | {0.0, 2.0}), [0.0, 2.0])
            self.assertTrue(shape is None or (found == found[:, :1]).all())


class Branches(tf.test.TestCase):
    def test_loops_without_a_turn(self):
        def run(limit):
            return tf.while_loop(lambda i: i < 5, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=limit)[0]
        for call in (run, tf.function(run)):
            self.assertEqual([int(call(limit)) for limit in (0, 1, None)], [0, 1, 5])

    def test_cases(self):
        def case(first, second, default, exclusive):
            return tf.case([(first, lambda: tf.constant(1)), (second, lambda: tf.constant(2))],
                           (lambda: tf.constant(3)) if default else None, exclusive)
        for call in (case, tf.function(case)):
            yes, no = tf.constant(True), tf.constant(False)
            self.assertEqual([int(call(*given)) for given in ((yes, yes, False, False), (no, yes, False, True), (no, no, True, True))],
                             [1, 2, 3])
            for given in ((no, no, False, False), (yes, yes, True, True)):
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    int(call(*given))

    def test_maps_with_several_results(self):
        found = tf.vectorized_map(lambda row: (row * 2, {"sum": tf.reduce_sum(row)}), X)
        self.assertIsInstance(found, tuple)
        self.assertAllEqual(found[0], X * 2)
        self.assertAllEqual(found[1]["sum"], X.sum(1))
        self.assertAllEqual(tf.vectorized_map(lambda row: row + 1, X), X + 1)


class Derivatives(tf.test.TestCase):
    def test_jacobians_of_nests_and_without_a_path(self):
        a, b, other = (tf.Variable([float(n), 2.0]) for n in (1, 3, 5))
        for sources in ([a, b], {"a": a, "b": (b,)}):
            with tf.GradientTape() as tape:
                y = a * b
            found = tape.jacobian(y, sources)
            for matrix, diagonal in zip(tf.nest.flatten(found), (b, a)):
                self.assertAllEqual(matrix, np.diag(diagonal.numpy()))
        with tf.GradientTape(persistent=True) as tape:
            y, z = a * b, tf.stack([a, b]) * 1
        self.assertIsNone(tape.jacobian(y, [a, other])[1])
        self.assertAllEqual(tape.jacobian(y, other, unconnected_gradients="zero"), np.zeros([2, 2]))
        self.assertAllEqual(tape.jacobian(y, other, tf.UnconnectedGradients.ZERO), np.zeros([2, 2]))


    def test_functions_with_gradients_give_one_tensor(self):
        x = tf.constant(X)
        for f in (tf.recompute_grad(lambda v: (v, v)), tf.custom_gradient(lambda v: ((v, v), lambda a, b: a + b)),
                  gradus.recompute_grad(lambda v: [v, v]), gradus.custom_gradient(lambda v: ({"a": v}, lambda dy: dy))):
            with self.assertRaisesRegex(TypeError, "gives one tensor"):
                f(x)
        self.assertAllEqual(tf.recompute_grad(lambda v: v * 2)(x), 2 * X)


class Files(tf.test.TestCase):
    def text(self, path):
        with tf.io.gfile.GFile(path) as file:
            return file.read()

    def test_files_are_not_overwritten_unasked(self):
        folder, gfile = self.get_temp_dir(), tf.io.gfile
        a, b, none = (os.path.join(folder, name) for name in ("a", "b", "none"))
        for path in (a, b):
            with gfile.GFile(path, "w") as file:
                file.write(path)
        for move in (gfile.copy, gfile.rename):
            with self.assertRaises(tf.errors.AlreadyExistsError):
                move(a, b)
            with self.assertRaises(tf.errors.NotFoundError):
                move(none, b, overwrite=True)
            self.assertEqual(self.text(b), b)
        gfile.copy(a, b, overwrite=True)
        self.assertEqual(self.text(b), a)
        self.assertEqual(gfile.glob([a, os.path.join(folder, "b*")]), [a, b])
        for call in (gfile.remove, gfile.rmtree, gfile.listdir, gfile.GFile):
            with self.assertRaises(tf.errors.NotFoundError):
                call(none)

    def test_columns_of_several_lines(self):
        number, text = tf.io.decode_csv(["1,a", "2,", ",c"], [7, "z"])
        self.assertAllEqual(number, [1, 2, 7])
        self.assertEqual(text.tolist(), [b"a", b"z", b"c"])

    def test_raw_bytes(self):
        self.assertAllEqual(tf.io.decode_raw(b"\1\0\2\0\3", tf.int16, fixed_length=4), [1, 2])
        self.assertAllEqual(tf.io.decode_raw(b"\1\0", tf.int16, fixed_length=6), [1, 0, 0])
        for data, length in ((b"\1\0\2", None), (b"\1\0", 3), (b"\1\0", 0)):
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.io.decode_raw(data, tf.int16, fixed_length=length)

    def test_records_until_an_error_are_written(self):
        path = os.path.join(self.get_temp_dir(), "r")
        with self.assertRaises(KeyError), tf.io.TFRecordWriter(path) as writer:
            writer.write(b"one")
            raise KeyError("mine")
        self.assertEqual([x.numpy() for x in tf.data.TFRecordDataset(path)], [b"one"])
        with self.assertRaisesRegex(ValueError, "TFRecordOptions"):
            tf.io.TFRecordWriter(path, "GZIP")

    def test_what_is_not_offered_is_refused(self):
        for call in (lambda: tf.strings.ngrams(["a", "b"], 2, padding_width=1), lambda: tf.unstack(X, num=3),
                     lambda: tf.train.CheckpointManager(tf.train.Checkpoint(), self.get_temp_dir(), 1, 2.0)):
            with self.assertRaises(ValueError):
                call()
        self.assertEqual([t.tolist() for t in tf.unstack(X, num=2)], X.tolist())
        found = tf.unique_with_counts([3, 3, 4], out_idx=tf.int64)
        self.assertEqual((found[1].dtype, found[2].dtype, found[2].tolist()), (tf.int64, tf.int64, [2, 1]))

    def test_tables_have_the_dtypes_that_were_said(self):
        path = os.path.join(self.get_temp_dir(), "words")
        with open(path, "w") as file:
            file.write("a\nb\n")
        line = tf.lookup.TextFileIndex
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(path, tf.string, line.WHOLE_LINE, tf.int64, line.LINE_NUMBER), -1)
        found = table.lookup(["b", "c"])
        self.assertEqual((found.dtype, found.tolist()), (tf.int64, [1, -1]))
        numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ["x", "y"], key_dtype=tf.int64), "?")
        self.assertEqual(numbers.lookup([2, 3]).tolist(), [b"y", b"?"])
        for wrong in (tf.constant([1], tf.int32), ["1"], tf.constant([1.0])):
            with self.assertRaises(TypeError):
                numbers.lookup(wrong)

    def test_patterns_count_characters(self):
        self.assertEqual(tf.strings.regex_replace("aéb", "a.b", "x").numpy(), b"x")
        self.assertTrue(tf.strings.regex_full_match("é", ".").item())
        self.assertEqual(tf.strings.regex_replace(b"\xff1", r"\d", "é").numpy(), "é".encode().join([b"\xff", b""]))

    def test_strings_are_not_written_through_arrays(self):
        x = tf.constant(["a", "b"])
        with self.assertRaises(ValueError):
            np.asarray(x)[0] = b"c"
        np.array(x)[0] = b"c"
        self.assertEqual(x.tolist(), [b"a", b"b"])


class Errors(tf.test.TestCase):
    def test_errors_have_texts_and_codes(self):
        for name in ("Aborted", "AlreadyExists", "Cancelled", "DeadlineExceeded", "PermissionDenied", "Unauthenticated", "Unknown"):
            error = getattr(tf.errors, f"{name}Error")("text")
            self.assertIsInstance(error, tf.errors.OpError)
            self.assertEqual((error.message, error.op), ("text", None))
        with self.assertRaises(tf.errors.InvalidArgumentError) as raised:
            tf.reshape(X, [4])
        self.assertEqual((raised.exception.error_code, raised.exception.message), (tf.errors.INVALID_ARGUMENT, str(raised.exception)))

    def test_layers_in_lists_have_names_of_their_own(self):
        class Net(nn.Model):
            def __init__(self):
                super().__init__()
                self.a, self.a_0 = [nn.Dense(3), nn.Dense(3)], nn.Dense(3)

            def call(self, x):
                return self.a_0(self.a[1](self.a[0](x)))
        model = Net()
        model(X)
        self.assertEqual(len({v.name for v in model.variables}), 6)

    def test_a_step_that_gives_no_dict(self):
        class Net(nn.Model):
            def __init__(self):
                super().__init__()
                self.w = nn.Dense(1)

            def call(self, x):
                return self.w(x)

            def train_step(self, batch):
                return tf.reduce_sum(self(batch[0]))
        model = Net()
        model.compile(nn.SGD(0.1))
        with self.assertRaisesRegex(TypeError, "dict of numbers by name"):
            model.fit(X, X, verbose=False)

    def test_hooks_that_are_not_called_are_named(self):
        class Note(nn.Callback):
            def on_test_batch_end(self, step, logs):
                pass
        model = nn.Sequential([nn.Dense(1)])
        model.compile(nn.SGD(0.0), "mean_squared_error")
        with self.assertWarnsRegex(Warning, "Note has on_test_batch_end"):
            model.fit(X, X[:, :1], callbacks=[Note()], verbose=False)

    def test_numbers_of_the_validation_have_both_names(self):
        model = nn.Sequential([nn.Dense(1)])
        model.compile(nn.SGD(0.0), "mean_squared_error")
        history = model.fit(X, X[:, :1], validation_data=(X, X[:, :1]), verbose=False).history
        for name in ("loss", "val_loss", "validation_loss"):
            self.assertIn(name, history)
        self.assertNotIn("val_other", history)
        self.assertEqual(history["val_loss"], history["validation_loss"])
        self.assertFalse("val_" in gradus.nn.History({}, 0).history)


if __name__ == "__main__":
    tf.test.main()
