"""Checkpoints, event files, assertions, arrays of tensors, strategies and concrete functions of gradus.tensorflow."""
import os
import struct
import warnings

import gradus
import gradus.tensorflow as tf
import numpy as np
from gradus import nn

X = np.random.default_rng(0).normal(size=(28, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


class Training:
    """A training with dropout, whose parts go on where the one before ended."""

    def __init__(self):
        self.model = nn.Sequential([nn.Dense(8, "relu"), nn.Dropout(0.5), nn.Dense(1)])
        self.model(X)
        self.optimizer, self.loss = nn.Adam(0.01), nn.MeanSquaredError()
        self.step = tf.Variable(0, dtype=tf.int64)
        self.data = iter(tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(28, seed=2).batch(4).repeat())
        self.generator = tf.random.Generator.from_seed(5)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer, step=self.step, data=self.data,
                                              generator=self.generator)

    def run(self, steps):
        for _ in range(steps):
            x, y = next(self.data)
            with tf.GradientTape() as tape:
                loss = self.loss(y, self.model(x + self.generator.normal(x.shape, stddev=0.1), training=True))
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            self.step.assign_add(1)
        return [v.numpy().tolist() for v in self.model.variables]


class Checkpoints(tf.test.TestCase):
    def test_a_restored_training_has_the_same_bits(self):
        folder = self.get_temp_dir()
        tf.random.set_seed(1)
        whole = Training()
        whole.run(5)
        path = whole.checkpoint.save(os.path.join(folder, "ckpt"))
        wanted = whole.run(6)
        tf.random.set_seed(99)
        other = Training()
        other.checkpoint.restore(tf.train.latest_checkpoint(folder)).assert_consumed()
        self.assertEqual((other.step.item(), path, other.checkpoint.save_counter.item()), (5, os.path.join(folder, "ckpt-1"), 1))
        self.assertEqual(other.run(6), wanted)

    def test_a_manager_keeps_the_newest(self):
        v = tf.Variable([1.0, 2.0])
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), self.get_temp_dir(), max_to_keep=2)
        self.assertIsNone(manager.latest_checkpoint)
        for i in range(4):
            v.assign([i, i])
            manager.save()
        self.assertEqual([os.path.basename(p) for p in manager.checkpoints], ["ckpt-3", "ckpt-4"])
        v.assign([9, 9])
        tf.train.Checkpoint(v=v).restore(manager.checkpoints[0])
        self.assertAllEqual(v, [2, 2])
        self.assertIn(("v", [2]), tf.train.list_variables(manager.directory))

    def test_bad_files_and_shapes(self):
        folder = self.get_temp_dir()
        half = tf.Variable([1.5], dtype=tf.bfloat16)
        path = tf.train.Checkpoint(v=tf.Variable([1.0]), half=half).save(os.path.join(folder, "a"))
        half.assign(tf.cast([0.0], tf.bfloat16))
        tf.train.Checkpoint(half=half).restore(path).expect_partial()
        self.assertEqual(half.numpy().astype(float).tolist(), [1.5])
        with self.assertRaisesRegex(AssertionError, "'v' was not used|'v'"):
            tf.train.Checkpoint(half=half).restore(path).assert_consumed()
        with self.assertRaisesRegex(ValueError, "v is float32"):
            tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).restore(path)
        with self.assertRaisesRegex(ValueError, "build the model"):
            tf.train.Checkpoint(model=nn.Dense(1)).restore(tf.train.Checkpoint(model=[tf.Variable(1.0)]).save(
                os.path.join(folder, "b")))
        with self.assertRaises(tf.errors.NotFoundError):
            tf.train.Checkpoint(v=half).restore(os.path.join(folder, "none"))
        with np.load(f"{path}.npz") as file:
            arrays = dict(file)
        (notes,) = [name for name in arrays if arrays[name].dtype == np.uint8]
        for damaged in (b"\xff", b"{", b"[]", b"{}", b'{"dtypes": {}}', b'{"dtypes": {"none": "bfloat16"}}'):
            np.savez(f"{path}.npz", **(arrays | {notes: np.frombuffer(damaged, np.uint8)}))
            with self.assertRaises(tf.errors.DataLossError):
                tf.train.Checkpoint(half=half).restore(path)
        with open(f"{path}.npz", "r+b") as file:
            file.truncate(40)
        with self.assertRaises(tf.errors.DataLossError):
            tf.train.Checkpoint(half=half).restore(path)


class Summaries(tf.test.TestCase):
    def test_records_are_in_the_file(self):
        folder = self.get_temp_dir()
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default(step=3):
            self.assertTrue(tf.summary.scalar("loss", tf.constant(0.5)))
            tf.summary.histogram("weights", [1.0, 2.0], step=4)
            tf.summary.image("picture", np.zeros([1, 2, 2, 3], np.float32))
            with tf.summary.record_if(False):
                self.assertFalse(tf.summary.scalar("other", 1.0))
        self.assertFalse(tf.summary.scalar("nowhere", 1.0, step=1))
        (name,) = os.listdir(folder)
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        records = []
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            records.append(data[12:12 + size])
            data = data[16 + size:]
        for tag, count in ((b"loss", 1), (b"weights", 1), (b"picture", 1), (b"other", 0)):
            self.assertEqual(sum(tag in record for record in records), count)
        with self.assertRaisesRegex(ValueError, "no step"), writer.as_default():
            tf.summary.scalar("loss", 1.0)


class Assertions(tf.test.TestCase):
    def test_they_hold_or_raise(self):
        tf.debugging.assert_equal([1, 2], [1, 2])
        tf.debugging.assert_near(1.0, 1.0 + 1e-7)
        tf.debugging.assert_shapes([(X, ("n", "k")), (Y, ("n", 1))])
        tf.debugging.assert_rank(X, 2)
        self.assertAllEqual(tf.debugging.check_numerics(X, "x"), X)
        tf.Assert(tf.constant(True), [1])
        for fails, error in ((lambda: tf.debugging.assert_less([1, 5], [2, 3], "mine"), tf.errors.InvalidArgumentError),
                             (lambda: tf.debugging.assert_non_negative([-1.0]), tf.errors.InvalidArgumentError),
                             (lambda: tf.debugging.check_numerics([np.nan], "mine"), tf.errors.InvalidArgumentError),
                             (lambda: tf.debugging.assert_shapes([(X, ("n", "n"))]), ValueError),
                             (lambda: tf.debugging.assert_type(X, tf.int32), TypeError),
                             (lambda: tf.assert_equal(1, 2), tf.errors.InvalidArgumentError)):
            with self.assertRaises(error):
                fails()

    def test_within_a_traced_function_each_call_decides(self):
        @tf.function
        def f(x):
            tf.debugging.assert_positive(x, "must be positive")
            return x * 2
        self.assertAllEqual(f(tf.constant([1.0])), [2])
        self.assertAllEqual(f(tf.constant([3.0])), [6])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "must be positive"):
            f(tf.constant([-3.0]))
        self.assertAllEqual(f(tf.constant([4.0])), [8])


class Containers(tf.test.TestCase):
    def test_tensor_arrays(self):
        @tf.function
        def squares(x):
            array = tf.TensorArray(tf.float32, size=3)
            for i in range(3):
                array = array.write(i, x[i] ** 2)
            return array.stack()
        self.assertAllEqual(squares(tf.constant([1.0, 2.0, 3.0])), [1, 4, 9])
        array = tf.TensorArray(tf.int32, size=0, dynamic_size=True).write(2, 5)
        self.assertAllEqual(array.stack(), [0, 0, 5])
        self.assertAllEqual(array.unstack(tf.constant([[1, 2], [3, 4]])).concat(), [1, 2, 3, 4])
        with self.assertRaises(tf.errors.OutOfRangeError):
            tf.TensorArray(tf.float32, size=1).write(1, 0.0)
        with self.assertRaises(tf.errors.InvalidArgumentError):
            array.write(0, tf.constant(1.0))

    def test_indexed_slices(self):
        slices = tf.IndexedSlices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 2, 0], [3, 2])
        self.assertAllEqual(tf.convert_to_tensor(slices), [[6, 8], [0, 0], [3, 4]])

    def test_initializers(self):
        self.assertAllEqual(tf.constant_initializer([1.0, 2.0])([2]), [1, 2])
        self.assertAllInRange(tf.random_uniform_initializer(-1, 1)([20]), -1, 1)


class Functions(tf.test.TestCase):
    def test_a_signature_belongs_to_a_method(self):
        class Net(tf.Module):
            def __init__(self):
                super().__init__()
                self.v = tf.Variable(2.0)

            @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
            def scaled(this, x):
                return x * this.v
        net = Net()
        self.assertAllEqual(net.scaled([1, 2]), [2, 4])
        self.assertAllEqual(net.scaled(x=[3.0]), [6])
        self.assertAllEqual(Net.scaled(net, [1.0]), [2])
        with self.assertRaisesRegex(TypeError, "scaled"):
            net.scaled([1.0], [2.0])

    def test_concrete_functions(self):
        @tf.function
        def f(x, n=2):
            return x * n
        concrete = f.get_concrete_function(tf.TensorSpec([None], tf.float32), 3)
        self.assertAllEqual(concrete([1.0, 2.0]), [3, 6])
        self.assertAllEqual(concrete(x=[1.0]), [3])


class Datasets(tf.test.TestCase):
    def test_functions_of_data_sets_are_called_when_elements_are_asked_for(self):
        calls = []

        def rows(i):
            calls.append(1)
            return tf.data.Dataset.range(3).map(lambda j: i * 10 + j)
        for name in ("flat_map", "interleave"):
            data = getattr(tf.data.Dataset.range(2), name)(rows).map(lambda x: x + 1).batch(4).prefetch(1)
            self.assertEqual(calls, [])
            self.assertEqual(sorted(x for batch in data for x in batch.tolist()), [1, 2, 3, 11, 12, 13])
            calls.clear()
        windows = tf.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)
        self.assertEqual([x.tolist() for x in windows], [[0, 2, 4], [1, 3, 5]])

    def test_only_what_cannot_be_traced_runs_in_python_and_keeps_its_length(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data = tf.data.Dataset.range(10).map(lambda x: tf.py_function(lambda t: t.numpy() ** 2, [x], tf.int64))
            self.assertEqual((len(data), [int(x) for x in data.skip(3).take(2)], len(said)), (10, [9, 16], 0))
            even = tf.data.Dataset.range(6).filter(lambda x: int(x) % 2 == 0)
            self.assertEqual([int(x) for x in even], [0, 2, 4])
        self.assertEqual([(str(each.message)[:6], each.filename) for each in said], [("filter", __file__)])
        for wrong in (lambda x: tf.matmul(x, x), lambda x: {}["none"], lambda x: x.nothing):
            with self.assertRaises((ValueError, KeyError, AttributeError)):
                tf.data.Dataset.range(3).map(wrong)


class Strategies(tf.test.TestCase):
    def train(self, strategy, with_loss):
        gradus.set_seed(1)
        with strategy.scope():
            model = nn.Sequential([nn.Dense(8, "relu"), nn.Dense(1)])
            optimizer, loss_function, traced = nn.SGD(0.1), nn.MeanSquaredError(), []
            self.assertIs(tf.distribute.get_strategy(), strategy)

        @tf.function
        def step(x, y):
            traced.append(1)
            with tf.GradientTape() as tape:
                found = model(x, training=True)
                if with_loss:
                    loss = loss_function(y, found)
                else:
                    loss = tf.nn.compute_average_loss(tf.reduce_mean((found - y) ** 2, axis=1), global_batch_size=7)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss
        data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((X, Y)).batch(7))
        for x, y in data:
            found = strategy.run(step, args=(x, y))
        total = strategy.reduce("MEAN" if with_loss else tf.distribute.ReduceOp.SUM, found, axis=None)
        return [v.numpy() for v in model.variables], float(total), len(traced)

    def test_two_replicas_train_as_one(self):
        for with_loss in (True, False):
            one, loss, _ = self.train(tf.distribute.get_strategy(), with_loss)
            two, other, traced = self.train(tf.distribute.MirroredStrategy(["cpu:0", "/cpu:1"]), with_loss)
            self.assertAllClose(one, two, rtol=1e-5)
            self.assertAllClose(loss, other, rtol=1e-5)
            self.assertLess(traced, 4)  # once for each length of a shard

    def test_values_of_replicas(self):
        strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
        found = strategy.run(lambda x: tf.reduce_sum(x), args=(tf.range(4),))
        self.assertEqual([int(v) for v in strategy.experimental_local_results(found)], [1, 5])
        self.assertEqual((strategy.reduce("SUM", found, axis=None).item(), strategy.num_replicas_in_sync), (6, 2))
        with self.assertRaisesRegex(ValueError, "differs from replica"):
            float(found)
        with self.assertRaisesRegex(KeyError, "mine"):
            strategy.run(lambda x: {}["mine"], args=(tf.range(4),))


if __name__ == "__main__":
    tf.test.main()
