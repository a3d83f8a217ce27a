"""Models in Python: layers as attributes, copies, collection, errors; and trainings of them."""
import contextlib
import copy
import gc
import io
import os
import pickle
import signal
import tempfile
import threading
import unittest
import warnings
import weakref

import gradus
import numpy as np
from gradus import nn

X = np.random.default_rng(0).normal(size=(600, 5)).astype("float32")
Y = X[:, :3].argmax(1)


class Net(nn.Model):
    def __init__(self, units=16):
        super().__init__()
        self.hidden = nn.Dense(units, "relu")
        self.more = [nn.Dense(8, "relu"), nn.Dropout(0.1)]
        self._scores = nn.Dense(3)
        self.scale = gradus.Variable(1.0)

    def call(self, x, training=None):
        x = self.hidden(x)
        for layer in self.more:
            x = layer(x)
        return self._scores(x) * self.scale


class Two(nn.Model):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(1), nn.Dense(3)

    def call(self, p, q):
        return {"u": self.a(p), "v": self.b(q)}


def crossentropy():
    return nn.SparseCategoricalCrossentropy(from_logits=True)


class Models(unittest.TestCase):
    def test_names_are_those_of_attributes(self):
        net = Net()
        net(X)
        names = [v.name for v in net.variables]
        self.assertEqual(names, ["hidden/kernel", "hidden/bias", "more_0/kernel", "more_0/bias", "_scores/kernel",
                                 "_scores/bias", "scale"])

    def test_training_is_known_within_the_call(self):
        class Says(nn.Model):
            def call(self, x, training=None):
                seen.append(training)
                return x
        seen, says = [], Says()
        says(X), says(X, training=True), nn.Sequential([says])(X, training=True)
        self.assertEqual((seen[0], seen[1], seen[-1]), (False, True, True))

    def test_a_copy_has_variables_of_its_own(self):
        net = Net()
        before = net(X).numpy()
        other = copy.deepcopy(net)
        np.testing.assert_array_equal(other(X).numpy(), before)
        other.hidden.kernel.assign(other.hidden.kernel * 0)
        np.testing.assert_array_equal(net(X).numpy(), before)
        self.assertFalse(np.array_equal(other(X).numpy(), before))
        self.assertFalse(np.array_equal(copy.copy(other)(X).numpy(), before))

    def test_models_are_collected_but_not_within_others(self):
        net = Net()
        net(X)
        seen = weakref.ref(net)
        whole = nn.Sequential([net, nn.Dense(2)])
        del net
        gc.collect()
        self.assertEqual(whole(X).shape, (600, 2))
        del whole
        gc.collect()
        self.assertIsNone(seen())

    def test_pickles_hold_what_a_model_is(self):
        net = Net()
        net(X)
        net.hidden.trainable = False
        plain = nn.Sequential([nn.Dense(4, "relu", name="first")])
        plain.add(nn.Dense(2))
        plain(X)
        for model in (net, plain, nn.Sequential([nn.Dense(3)])):
            other = pickle.loads(pickle.dumps(model))
            self.assertEqual([(v.name, v.trainable) for v in other.variables], [(v.name, v.trainable) for v in model.variables])
            if model.built:
                np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())
        self.assertIs(type(pickle.loads(pickle.dumps(net)).hidden), nn.Dense)

    def test_files_of_keras(self):
        model = nn.Sequential([nn.Dense(4, "relu"), nn.Dense(2)])
        model(X)
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "m.keras"))
            model.save_weights(os.path.join(folder, "m.weights.h5"))
            other = nn.load_model(os.path.join(folder, "m.keras"))
            np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())
            other.load_weights(os.path.join(folder, "m.weights.h5"))
            graph = nn.load_functional(os.path.join(folder, "m.keras"))
            np.testing.assert_array_equal(graph([X])[0].numpy(), model(X).numpy())
            np.testing.assert_array_equal(graph(X).numpy(), model(X).numpy())
            self.assertEqual((graph.input_names, graph.output_names), (["input_layer"], ["sequential"]))
            self.assertEqual(graph.input_specs, [gradus.TensorSpec([None, X.shape[1]], gradus.float32)])

    def test_lists_of_numbers_are_tensors_and_none_is_none(self):
        class Masked(nn.Model):
            def __init__(self):
                self.dense = nn.Dense(2)

            def call(self, x, mask=None, both=()):
                return self.dense(x if mask is None else x * mask) + len(both)
        masked = Masked()
        self.assertEqual(masked([[1.0, 2.0]], None).shape, (1, 2))
        self.assertEqual(masked(X[:, :2], X[:, :1], [X, X]).shape, (600, 2))

    def test_errors_say_what_to_do(self):
        class Lost(nn.Model):
            def call(self, x):
                return nn.Dense(3)(x)

        class Empty(nn.Model):
            pass
        with self.assertRaisesRegex(gradus.errors.InvalidArgumentError, "neither trained nor saved"):
            Lost()(X)
        with self.assertRaisesRegex(NotImplementedError, "Empty has no call"):
            Empty()(X)
        with self.assertRaisesRegex(RuntimeError, "compile"):
            Net().fit(X, Y)
        net = Net()
        with self.assertRaisesRegex(ValueError, "did you mean 'adam'"):
            net.compile("adm", "mse")
        net.compile("adam", crossentropy())
        with self.assertRaisesRegex(ValueError, "x alone"):
            net.fit(X)
        with self.assertRaisesRegex(TypeError, "nn.Callback"):
            net.fit(X, Y, callbacks=[lambda: None])

    def test_an_exception_within_the_call_comes_out(self):
        class Fails(nn.Model):
            def call(self, x):
                raise KeyError("mine")
        fails = Fails()
        fails.compile("adam", "mse")
        for call in (lambda: fails(X), lambda: fails.fit(X, X, verbose=False)):
            with self.assertRaisesRegex(KeyError, "mine"):
                call()


class Training(unittest.TestCase):
    def setUp(self):
        gradus.set_seed(1)
        self.net = Net()
        self.net.compile(nn.Adam(0.01), crossentropy(), metrics=["accuracy"])

    def test_fit_evaluate_predict(self):
        history = self.net.fit(X, Y, epochs=20, validation_data=(X, Y), verbose=False)
        self.assertEqual(len(history["loss"]), 20)
        self.assertLess(history["loss"][-1], 0.3 * history["loss"][0])
        self.assertEqual(history.history["val_loss"], history["validation_loss"])
        numbers = self.net.evaluate(X, Y)
        self.assertAlmostEqual(numbers["loss"], history["validation_loss"][-1], places=5)
        found = self.net.predict(X).argmax(1)
        self.assertAlmostEqual((found == Y).mean(), numbers["accuracy"], places=6)

    def test_a_data_set_trains_as_a_loop_of_steps(self):
        data = gradus.data.from_tensor_slices((X, Y)).batch(32)
        self.net.more = self.net.more[:1]  # without dropout
        self.net(X)
        other, loss, optimizer = copy.deepcopy(self.net), crossentropy(), nn.Adam(0.01)
        for x, y in data:
            with gradus.GradientTape() as tape:
                value = loss(y, other(x, training=True))
            found = tape.gradient(value, other.trainable_variables)
            optimizer.apply_gradients(zip(found, other.trainable_variables))
        self.net.fit(data, epochs=1, verbose=False)
        for a, b in zip(self.net.variables, other.variables):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)

    def test_callbacks_see_and_stop(self):
        class Mine(nn.Callback):
            def __init__(self):
                super().__init__()
                self.epochs, self.batches, self.ends = [], [], 0

            def on_epoch_end(self, epoch, logs):
                self.epochs.append(logs["val_loss"])
                self.stop_training = epoch == 2

            def on_train_batch_end(self, batch, logs):
                self.batches.append(batch)
                self.loss = logs["loss"]

            def on_train_end(self, logs):
                self.ends += 1
        mine = Mine()
        self.net.fit(X, Y, batch_size=100, epochs=9, validation_data=(X, Y), verbose=False,
                     callbacks=[mine, nn.early_stopping(patience=5)])
        self.assertEqual((len(mine.epochs), mine.batches, mine.ends), (3, list(range(6)) * 3, 1))
        self.assertIs(mine.model, self.net)
        self.assertGreater(mine.loss, 0)

    def test_callbacks_that_raise(self):
        class Raises(nn.Callback):
            def on_epoch_end(self, epoch, logs):
                raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            self.net.fit(X, Y, verbose=False, callbacks=[Raises()])
        self.net.fit(X, Y, verbose=False)

    def test_several_inputs_and_outputs(self):
        two = Two()
        two.compile(nn.SGD(0.1), {"u": "mse", "v": crossentropy()}, loss_weights={"u": 0.5, "v": 1.0})
        data = gradus.data.from_tensor_slices(((X, X), {"u": X[:, :1], "v": Y})).batch(50)
        history = two.fit(data, epochs=3, verbose=False)
        self.assertLess(history["u_loss"][-1], history["u_loss"][0])
        self.assertAlmostEqual(history["loss"][-1], 0.5 * history["u_loss"][-1] + history["v_loss"][-1], places=5)
        self.assertEqual({name: each.shape for name, each in two.predict(data).items()}, {"u": (600, 1), "v": (600, 3)})

    def test_a_step_of_ones_own(self):
        class Own(Net):
            def train_step(self, data):
                x, y = data
                with gradus.GradientTape() as tape:
                    loss = crossentropy()(y, self(x, training=True))
                optimizer.apply_gradients(tape.gradient(loss, self.trainable_variables))
                return {"loss": loss, "twice": 2 * loss.value}
        own, optimizer = Own(), nn.Adam(0.01)
        own.compile(optimizer)
        history = own.fit(X, Y, epochs=4, verbose=False)
        self.assertLess(history["loss"][-1], history["loss"][0])
        self.assertEqual(len(history["twice"]), 4)

    def test_weights_of_examples_and_classes(self):
        weights = np.where(Y == 0, 0.0, 1.0).astype("float32")
        weighted = self.net.evaluate(X, Y, sample_weight=weights)["loss"]
        self.assertAlmostEqual(weighted, self.net.evaluate(X[Y != 0], Y[Y != 0])["loss"], places=5)
        self.net.fit(X, Y, class_weight={0: 0.0, 1: 1.0, 2: 1.0}, epochs=20, verbose=False)
        self.assertNotIn(0, self.net.predict(X).argmax(1))

    def test_generators_are_data(self):
        def batches():
            for i in range(10):
                yield X[i * 60:(i + 1) * 60], Y[i * 60:(i + 1) * 60]
        self.assertEqual(len(self.net.fit(batches(), verbose=False)["loss"]), 1)

    def test_files_and_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            self.net.fit(X, Y, epochs=2, verbose=False)
            for name in ("w.npz", "w.safetensors"):
                file, other = os.path.join(folder, name), Net()
                self.net.save_weights(file)
                other(X)
                other.load_weights(file)
                np.testing.assert_array_equal(other(X).numpy(), self.net(X).numpy())

            def trained(parts, where):
                gradus.set_seed(3)
                net = Net()
                for epochs in parts:
                    net.compile(nn.Adam(0.01), crossentropy())
                    net.fit(gradus.data.from_tensor_slices((X, Y)).shuffle(600, seed=1).batch(32), epochs=epochs,
                            checkpoints=os.path.join(folder, where), verbose=False)
                return net(X).numpy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it says from where it goes on
                np.testing.assert_array_equal(trained([4], "whole"), trained([2, 4], "parts"))

    def test_an_interrupt_ends_the_training_and_the_model_trains_on(self):
        class Interrupts(nn.Callback):
            def on_epoch_end(self, epoch, logs):
                if epoch == 3:
                    os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            self.net.fit(X, Y, epochs=1_000_000, verbose=False, callbacks=[Interrupts()])
        self.assertEqual(len(self.net.fit(X, Y, epochs=2, verbose=False)["loss"]), 2)

    def test_progress_goes_to_pythons_stderr(self):
        with contextlib.redirect_stderr(io.StringIO()) as written:
            self.net.fit(X, Y, epochs=2)
        self.assertIn("epoch 2/2", written.getvalue())

    def test_models_belong_to_threads_that_use_them(self):
        found = []

        def train():
            net = Net()
            net.compile("adam", crossentropy())
            found.append(net.fit(X, Y, epochs=2, verbose=False)["loss"][-1])
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(found), 3)

    def test_pairs_and_lists_of_gradients(self):
        v, w = gradus.Variable([1.0, 2.0]), gradus.Variable(1.0)
        sgd = nn.SGD(0.5)
        sgd.build([v, w])
        sgd.apply_gradients(zip([gradus.constant([1.0, 1.0]), gradus.constant(2.0)], [v, w]))
        self.assertEqual((v.tolist(), w.item()), ([0.5, 1.5], 0))
        with self.assertWarnsRegex(RuntimeWarning, "have no gradient"):
            nn.SGD(0.5).apply_gradients([gradus.constant([1.0, 1.0]), None], [v, w])
        with self.assertRaisesRegex(ValueError, "no Variable has a gradient"):
            sgd.apply_gradients([(None, v)])
        with self.assertRaisesRegex(TypeError, "pairs"):
            sgd.apply_gradients([gradus.constant(1.0)])


if __name__ == "__main__":
    unittest.main()
