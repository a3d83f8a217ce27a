"""Training and checkpoints of gradus.tensorflow: losses, steps of replicas, what checkpoints hold, seeds of calls."""
import os

import gradus
import gradus.tensorflow as tf
import numpy as np
from gradus import nn

X = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")


class Losses(tf.test.TestCase):
    def test_adding_in_place_is_adding(self):
        w = tf.Variable([1.0, 2.0])

        def gradient(add):
            with tf.GradientTape() as tape:
                first, other = (gradus.Loss.mean(w * w * k) for k in (1.0, 3.0))
                total, kept = add(first, other), first.value.item()
            found = tape.gradient(total, w)
            self.assertEqual(first.value.item(), kept)
            return found.tolist(), float(total)

        def in_place(a, b):
            a += b
            return a
        self.assertEqual(gradient(in_place), gradient(lambda a, b: a + b))
        self.assertEqual(gradient(in_place)[0], [4.0, 8.0])

    def test_a_norm_that_is_not_finite_shows_in_all(self):
        for bad in (np.inf, np.nan, -np.inf):
            found, norm = tf.clip_by_global_norm([tf.constant([1.0]), tf.constant([bad, 2.0])], 1.0)
            self.assertTrue(all(np.isnan(each).all() for each in found))
        found, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
        self.assertAllClose([found[0], found[2], [norm]], [[0.6], [0.8], [5.0]])


class Steps(tf.test.TestCase):
    def strategy(self):
        return tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])

    def test_gradients_of_tensors_add_up_over_replicas(self):
        for target in (lambda x, w: x * w, lambda x, w: tf.reduce_sum(x * w),
                       lambda x, w: tf.reshape(tf.reduce_sum(x * w), [1])):
            w = tf.Variable([2.0, 3.0, 4.0])

            def step(x):
                with tf.GradientTape() as tape:
                    loss = target(x, w)
                return tape.gradient(loss, [w])[0]
            found = self.strategy().run(step, args=(X,))
            for value in self.strategy().experimental_local_results(found):
                self.assertAllClose(value, X.sum(0), 1e-5, 1e-5)

    def test_a_loss_that_replicas_made_together_counts_once(self):
        w = tf.Variable([2.0, 3.0, 4.0])
        for as_loss in (False, True):
            def step(x):
                with tf.GradientTape() as tape:
                    loss = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(x * w))
                    loss = gradus.Loss.of(loss) if as_loss else loss
                return tape.gradient(loss, [w])[0]
            found = self.strategy().run(step, args=(X,))
            for value in self.strategy().experimental_local_results(found):
                self.assertAllClose(value, X.sum(0), 1e-5, 1e-5)

    def test_a_step_sees_what_python_changed(self):
        strategy = self.strategy()
        box, kept = {"factor": 1.0}, tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

        def step(x, *, power=1):
            return tf.reduce_sum(x * 0) + box["factor"] * 10 ** power

        class Scale:
            factor = 1.0

            def step(self, x):
                return tf.reduce_sum(x * 0) + self.factor
        scale = Scale()
        for factor in (1.0, 5.0):
            box["factor"] = scale.factor = factor
            self.assertEqual(float(strategy.run(step, args=(X,))), 10 * factor)
            self.assertEqual(float(strategy.run(scale.step, args=(X,))), factor)
        step.__kwdefaults__["power"] = 2
        self.assertEqual(float(strategy.run(step, args=(X,))), 500.0)

    def test_a_compiled_function_runs_steps(self):
        """TensorFlow's own form: a tf.function around strategy.run, whose step is traced once."""
        strategy, traces = self.strategy(), []
        w, optimizer = tf.Variable(np.ones(X.shape[1], "float32")), nn.SGD(0.1)

        class Trainer:
            def step(self, x, scale):
                traces.append(1)
                with tf.GradientTape() as tape:
                    loss = tf.nn.compute_average_loss(tf.reduce_sum(x * w, axis=1) * scale, global_batch_size=len(X))
                optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
                return loss

            @tf.function
            def train(self, x, scale):
                losses = strategy.run(self.step, args=(x, scale))
                return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

            @tf.function
            def twice(self, x):
                return self.train(x, tf.constant(1.0)) + self.train(x, tf.constant(1.0))
        trainer, expected = Trainer(), np.ones(X.shape[1], "float32")
        for scale in (1.0, 1.0, 2.0):
            loss = trainer.train(tf.constant(X), tf.constant(scale))
            self.assertAlmostEqual(float(loss), float((X * expected).sum(1).mean() * scale), places=3)
            expected = expected - 0.1 * X.mean(0) * scale
            self.assertAllClose(w, expected, 1e-4, 1e-4)
        count = len(traces)
        trainer.twice(tf.constant(X))
        self.assertEqual(len(traces), count, "the step is traced once")

    def test_compiled_steps_are_traced_once_and_forgotten(self):
        strategy, traces = self.strategy(), []

        class Owner:
            @tf.function
            def step(self, x):
                traces.append(1)
                return tf.reduce_sum(x)
        known = len(tf.distribute._steps._known)
        owner = Owner()
        strategy.run(owner.step, args=(X,))
        count = len(traces)
        strategy.run(owner.step, args=(X,))
        self.assertEqual(len(traces), count)
        del owner
        self.assertEqual(len(tf.distribute._steps._known), known)


class Net(nn.Model):
    def __init__(self, units, extra=False):
        super().__init__()
        if extra:
            self.a_before = nn.Dense(3)
        self.hidden, self.last = nn.Dense(3), nn.Dense(units)

    def call(self, x):
        x = self.a_before(x) if hasattr(self, "a_before") else x
        return self.last(self.hidden(x))


def stepped(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


class Checkpoints(tf.test.TestCase):
    def path(self):
        return os.path.join(self.get_temp_dir(), "c")

    def test_modules_hold_layers_and_models_hold_modules(self):
        class Holder(tf.Module):
            def __init__(self):
                super().__init__()
                self.b, self.layers = tf.Variable(1.0), [nn.Dense(2), Net(1)]

        class Within(nn.Model):
            def __init__(self):
                super().__init__()
                self.holder = Holder()

            def call(self, x):
                return self.holder.layers[0](x) * self.holder.b
        holder, within = Holder(), Within()
        for layer in holder.layers:
            layer(X)
        within(X)
        self.assertEqual((len(holder.variables), len(holder.trainable_variables), len(holder.submodules)), (7, 7, 4))
        self.assertEqual(len(within.trainable_variables), 3)
        path = tf.train.Checkpoint(m=holder).write(self.path())
        other = Holder()
        for layer in other.layers:
            layer(X)
        tf.train.Checkpoint(m=other).read(path).assert_consumed()
        self.assertAllEqual(holder.layers[1](X), other.layers[1](X))

    def test_variables_come_in_the_order_of_tensorflow(self):
        root, child, grandchild = (tf.Module(name) for name in ("root", "child", "grandchild"))
        child.a_grandchild, grandchild.w = grandchild, tf.Variable(4.0)
        child.v, root.a_child, root.z = tf.Variable(1.0), child, tf.Variable(2.0)
        root.also = {"x": root.z, "y": tf.Variable(3.0)}
        self.assertEqual([float(v.numpy()) for v in root.variables], [2.0, 3.0, 1.0, 4.0])

    def test_each_optimizer_is_made_for_its_own_model(self):
        def parts():
            generator, critic = Net(3), Net(1)
            generator(X), critic(X)
            return {"critic": critic, "generator": generator, "critic_optimizer": nn.Adam(0.1), "generator_optimizer": nn.Adam(0.1)}
        one, two = parts(), parts()
        path = tf.train.Checkpoint(**one).write(self.path())  # no step yet: the optimizers stay as they are
        self.assertEqual(len(one["critic_optimizer"].variables), len(nn.Adam(0.1).variables))
        for each in ("generator", "critic"):
            stepped(one[each], one[f"{each}_optimizer"])
        path = tf.train.Checkpoint(**one).write(self.path())
        tf.train.Checkpoint(**two).read(path).assert_consumed()
        for all_parts in (one, two):
            for each in ("generator", "critic"):
                stepped(all_parts[each], all_parts[f"{each}_optimizer"])
        for each in ("generator", "critic"):
            self.assertAllEqual(one[each](X), two[each](X))

    def test_attributes_lead_to_variables(self):
        class Plain:
            def __init__(self, value):
                self.v, self.pair = tf.Variable(value), (tf.Variable([value]), {"k": tf.Variable(value)})

        def made(value):
            checkpoint = tf.train.Checkpoint(plain=Plain(value))
            checkpoint.later = [tf.Variable(value)]
            return checkpoint
        one, two = made(3.0), made(0.0)
        path = one.write(self.path())
        self.assertEqual([n for n, _ in tf.train.list_variables(path)],
                         ["later/0", "plain/pair/0", "plain/pair/1/k", "plain/v", "save_counter"])
        two.read(path).assert_consumed()
        self.assertEqual((two.plain.v.item(), two.plain.pair[1]["k"].item(), two.later[0].item()), (3.0, 3.0, 3.0))

    def test_a_new_layer_moves_no_other_one(self):
        one, two = Net(1), Net(1, extra=True)
        one(X), two(X)
        path = tf.train.Checkpoint(net=one).write(self.path())
        tf.train.Checkpoint(net=two).read(path)
        for layer in ("hidden", "last"):
            self.assertAllEqual(getattr(one, layer).variables[0], getattr(two, layer).variables[0])

    def test_refuses_what_it_cannot_hold(self):
        for value in (3, 1.5, "a", np.ones(2), tf.constant(1.0), len, Net, tf.constant("a"),
                      iter(tf.data.Dataset.from_tensor_slices(["a"])), tf.data.Dataset.range(3)):
            with self.assertRaisesRegex(ValueError, "cannot be saved"):
                tf.train.Checkpoint(value=value)
            with self.assertRaisesRegex(ValueError, "cannot be saved"):
                tf.train.Checkpoint().value = value


class Seeds(tf.test.TestCase):
    DRAWS = {
        "uniform": lambda: tf.random.uniform([4], seed=1), "normal": lambda: tf.random.normal([4], seed=1),
        "integers": lambda: tf.random.uniform([8], maxval=1000, dtype=tf.int32, seed=1),
        "truncated": lambda: tf.random.truncated_normal([4], seed=1), "gamma": lambda: tf.random.gamma([4], 2.0, seed=1),
        "shuffle": lambda: tf.random.shuffle(tf.range(50), seed=1),
        "categorical": lambda: tf.random.categorical(np.zeros([2, 1000], np.float32), 5, seed=1),
        "brightness": lambda: tf.image.random_brightness(np.zeros([1, 1, 1], np.float32), 0.5, seed=1),
        "contrast": lambda: tf.image.random_contrast(np.arange(4, dtype=np.float32).reshape(2, 2, 1), 0.1, 0.9, seed=1)}

    def test_a_seed_is_a_sequence_that_set_seed_begins(self):
        for name, draw in self.DRAWS.items():
            tf.random.set_seed(7)
            first = [draw().numpy().tolist() for _ in range(3)]
            self.assertEqual(len({str(each) for each in first}), 3, name)
            tf.random.set_seed(7)
            self.assertEqual([draw().numpy().tolist() for _ in range(3)], first, name)
            tf.random.set_seed(8)
            self.assertNotEqual(draw().numpy().tolist(), first[0], name)
            compiled = tf.function(draw)
            self.assertEqual(len({str(compiled().numpy().tolist()) for _ in range(3)}), 3, name)

    def test_crops_are_not_of_a_diagonal(self):
        image = np.stack(np.meshgrid(np.arange(20), np.arange(20), indexing="ij"), -1)
        places = [tuple(tf.image.random_crop(image, [2, 2, 2], seed=3).numpy()[0, 0]) for _ in range(12)]
        self.assertTrue(any(row != column for row, column in places))
        self.assertGreater(len(set(places)), 6)

    def test_brightness_changes_integers(self):
        tf.random.set_seed(1)
        image = np.full([2, 2, 1], 100, np.uint8)
        drawn = [tf.image.random_brightness(image, 0.4, seed=2).numpy() for _ in range(8)]
        self.assertTrue(all(each.dtype == np.uint8 and (each == each[0, 0]).all() for each in drawn))
        self.assertTrue(any(each[0, 0, 0] > 100 for each in drawn) and any(each[0, 0, 0] < 100 for each in drawn))

    def test_rows_before_a_validation_split_are_shuffled(self):
        seen = []

        x = np.arange(64, dtype=np.float32).reshape(64, 1)

        class Note(nn.Callback):
            def on_train_batch_end(self, step, logs):
                seen.append(round(logs["loss"] ** 0.5))
        for shuffle in (True, False):
            seen.clear()
            model = nn.Sequential([nn.Dense(1, kernel_initializer="ones")])
            model.compile(nn.SGD(0.0), "mean_squared_error")
            model.fit(x, 0 * x, batch_size=1, validation_split=0.25, shuffle=shuffle, callbacks=[Note()], verbose=False)
            self.assertEqual(sorted(seen), list(range(48)))
            self.assertEqual(seen == sorted(seen), not shuffle)
        with self.assertRaisesRegex(ValueError, "validation_split"):
            model.fit(x, x, validation_split=1.5)


if __name__ == "__main__":
    tf.test.main()
