"""fit, evaluate and predict by Keras's habits: iterators that end, dtypes of inputs, names of metrics, the history, steps of
the model's own, metrics and losses, functions as layers, names that are not known."""
import copy
import math
import unittest
import warnings

import gradus
import gradus.tensorflow
import numpy as np
from gradus import nn

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = (X[:, :1] > 0).astype("float32")
LABELS = X[:, :3].argmax(1)


def made(*layers, **options):
    model = nn.Sequential(list(layers) or [nn.Dense(1)])
    model.compile(**({"optimizer": nn.SGD(0.001), "loss": "mse"} | options))
    return model


class Losses(nn.Callback):
    """Lists the losses of all batches, by epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs):
        self.epochs.append([])

    def on_train_batch_end(self, batch, logs):
        self.epochs[-1].append(logs["loss"])


def batches(n):
    """n batches; that of number i has the loss i * i for a model whose result is 0."""
    for i in range(n):
        yield np.ones((2, 1), "float32"), np.full((2, 1), i, "float32")


def squares(*numbers):
    return [float(i * i) for i in numbers]


class Iterators(unittest.TestCase):
    def fit(self, data, **options):
        model, seen = made(nn.Dense(1, kernel_initializer="zeros"), optimizer=nn.SGD(0.0)), Losses()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.history = model.fit(data, verbose=0, callbacks=[seen], **options)
        return seen.epochs, [str(each.message) for each in said if "ran out" in str(each.message)]

    def test_a_training_ends_where_its_data_end(self):
        for count, epochs, steps, wanted in ((5, 3, None, [range(5)]), (10, 4, 4, [range(4), range(4, 8), range(8, 10)]),
                                             (8, 3, 4, [range(4), range(4, 8)]), (1, 2, None, [range(1)]), (1, 1, 2, [range(1)])):
            with self.subTest(count=count, epochs=epochs, steps=steps):
                found, said = self.fit(batches(count), epochs=epochs, steps_per_epoch=steps)
                self.assertEqual(found, [squares(*each) for each in wanted])
                self.assertEqual(len(self.history["loss"]), len(wanted))
                self.assertRegex("".join(said), f"ran out after {count} batches")

    def test_data_that_suffice_are_no_warning(self):
        for count, epochs, steps, wanted in ((5, 1, None, [range(5)]), (8, 2, 4, [range(4), range(4, 8)]),
                                             (9, 2, 3, [range(3), range(3, 6)]), (5, 1, 2, [range(2)])):
            with self.subTest(count=count, epochs=epochs, steps=steps):
                found, said = self.fit(batches(count), epochs=epochs, steps_per_epoch=steps)
                self.assertEqual((found, said), ([squares(*each) for each in wanted], []))

    def test_no_more_batches_are_asked_for_than_are_trained_on(self):
        asked = []

        def stream():
            for each in batches(100):
                asked.append(each)
                yield each
            raise AssertionError("it was read to its end")
        self.fit(stream(), epochs=2, steps_per_epoch=3)
        self.assertLessEqual(len(asked), 6)

    def test_other_trainings_by_iterators(self):
        found, said = self.fit(batches(9), epochs=3, steps_per_epoch=2, initial_epoch=1)
        self.assertEqual((found, said), ([squares(2, 3), squares(4, 5)], []))
        found, said = self.fit(batches(9), epochs=3, fast_dev_run=2)
        self.assertEqual((found, said), ([squares(0, 1)], []))
        strategy = gradus.tensorflow.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
        model, seen = made(nn.Dense(1, kernel_initializer="zeros"), optimizer=nn.SGD(0.0), strategy=strategy), Losses()
        with self.assertWarnsRegex(RuntimeWarning, "ran out after 5 batches"):
            model.fit(batches(5), epochs=2, verbose=0, callbacks=[seen])
        self.assertEqual(seen.epochs, [squares(*range(5))])

    def test_errors(self):
        spent = batches(2)
        list(spent)
        model = made()
        for use in (model.fit, model.evaluate, model.predict):
            with self.assertRaisesRegex(gradus.errors.DataLossError, "gives no batches"):
                use(spent)
        with self.assertRaisesRegex(ValueError, "validation_split is for arrays"):
            model.fit(batches(5), validation_split=0.2)
        with self.assertRaisesRegex(TypeError, "validation_data is read once an epoch"):
            model.fit(batches(5), validation_data=batches(5))
        bad = ((x, y * np.nan if y[0] == 3 else y) for x, y in batches(6))
        with self.assertRaisesRegex(gradus.errors.DivergedError, "not finite"):
            made().fit(bad, verbose=0)

    def test_evaluate_and_predict_read_iterators(self):
        model = made(nn.Dense(1, kernel_initializer="zeros"))
        self.assertEqual(model.evaluate(batches(4))["loss"], 14 / 4)
        self.assertEqual(model.evaluate(batches(4), steps=2, verbose=0)["loss"], 0.5)
        self.assertEqual(model.predict(batches(4)).shape, (8, 1))
        self.assertEqual(model.predict((x for x, y in batches(4)), steps=3).shape, (6, 1))


class Inputs(unittest.TestCase):
    def dtypes(self, model):
        return {v.dtype for v in model.variables}

    def test_wide_numbers_make_float32_models(self):
        for data in ((X.astype("float64"), Y), (gradus.data.from_tensor_slices((X.astype("float64"), Y)).batch(8), None)):
            model = made(nn.Dense(3, "relu"), nn.Dense(1))
            model.fit(*data, verbose=0)
            self.assertEqual(self.dtypes(model), {gradus.float32})
            for dtype in ("float32", "float64", "float16", "int32", "uint8", "int64"):
                given = (4 * abs(X)).clip(0, 9).astype(dtype)
                np.testing.assert_allclose(model.predict(given), model.predict(given.astype("float32")), rtol=1e-6)
                model.fit(given, Y.astype(dtype), verbose=0)
                self.assertTrue(math.isfinite(model.evaluate(given, Y)["loss"]))

    def test_inputs_follow_a_model_that_is_built(self):
        model = made()
        model(X.astype("float64"))
        model.fit(X, Y, verbose=0)
        self.assertEqual((self.dtypes(model), model.predict(X).dtype), ({gradus.float64}, np.float64))

    def test_models_of_ones_own_and_nests(self):
        class Net(nn.Model):
            def __init__(self):
                super().__init__()
                self.words, self.scores = nn.Embedding(5, 3), nn.Dense(1)

            def call(self, inputs):
                seen.append((inputs["ids"].dtype, inputs["x"].dtype))
                return self.scores(inputs["x"]) + self.words(inputs["ids"]).sum(-1, keepdims=True)
        net, seen = Net(), []
        net.compile("sgd", "mse")
        data = {"ids": np.arange(64) % 5, "x": X.astype("float64")}
        net.fit(data, Y, verbose=0)
        self.assertEqual(net.predict(data).shape, (64, 1))
        self.assertEqual(set(seen), {(gradus.int64, gradus.float32)})

    def test_integers_stay_for_layers_that_take_them(self):
        ids = np.arange(64).reshape(16, 4) % 5
        for layers in ((nn.Embedding(5, 3), nn.Flatten(), nn.Dense(1)), (nn.Reshape([2, 2]), nn.Flatten(), nn.Embedding(5, 3),
                                                                         nn.Flatten(), nn.Dense(1))):
            self.assertEqual(made(*layers).predict(ids).shape, (16, 1))
        pixels = np.arange(16 * 4, dtype="uint8").reshape(16, 2, 2)
        model = made(nn.Sequential([nn.Flatten()]), nn.Dense(2), nn.Dense(1))
        np.testing.assert_array_equal(model.predict(pixels), model.predict(pixels.astype("float32")))

    def test_predictions_are_arrays(self):
        found = made().predict(X)
        self.assertIs(type(found), np.ndarray)
        found += 1  # which may be written
        self.assertEqual(((found > 0.5) == Y).mean().shape, ())


class Names(unittest.TestCase):
    def test_metrics_have_the_names_that_are_given(self):
        for name in ("accuracy", "acc", "mae", "mse"):
            model = made(nn.Dense(1, "sigmoid"), loss="binary_crossentropy", metrics=[name])
            history = model.fit(X, Y, verbose=0, validation_data=(X, Y), epochs=2,
                                callbacks=[nn.early_stopping(monitor=f"validation_{name}", patience=5)])
            self.assertEqual(history[f"val_{name}"], history[f"validation_{name}"])
            self.assertEqual(set(model.evaluate(X, Y)), {"loss", name})

    def test_an_accuracy_is_that_of_its_class(self):
        rng = np.random.default_rng(1)
        scores = rng.integers(0, 3, (64, 3)).astype("float32")  # with ties
        one_hot, both = np.eye(3, dtype="float32")[LABELS], (rng.random((64, 3)) > 0.5).astype("float32")
        logits = {"from_logits": True}
        for loss, y, prediction, metric in (
                (nn.SparseCategoricalCrossentropy(**logits), LABELS, scores, nn.SparseCategoricalAccuracy()),
                ("sparse_categorical_crossentropy", LABELS, scores / 3, nn.SparseCategoricalAccuracy()),
                (nn.CategoricalCrossentropy(**logits), one_hot, scores, nn.CategoricalAccuracy()),
                (nn.BinaryCrossentropy(**logits), both, scores - 1, nn.BinaryAccuracy(from_logits=True)),
                (nn.BinaryCrossentropy(from_logits=False), both, scores / 2, nn.BinaryAccuracy(from_logits=False)),
                ("binary_crossentropy", both.astype(int), scores / 2, nn.BinaryAccuracy(from_logits=False))):
            model = nn.Sequential([nn.Dense(1)])
            model.compile("sgd", loss, metrics=["accuracy"])
            found, = model.metrics
            for each in (metric, found):
                each.update_state(y, prediction)
                each.update_state(y[:5], prediction[:5], sample_weight=np.arange(5, dtype="float32"))
            self.assertEqual((found.name, found.result()), ("accuracy", metric.result()))

    def test_a_history_is_a_mapping(self):
        history = made().fit(X, Y, epochs=3, verbose=0, validation_data=(X, Y))
        self.assertEqual((list(history), len(history)), (["loss", "validation_loss", "seconds"], 3))
        self.assertTrue("loss" in history and "val_loss" in history and 0 not in history)
        self.assertEqual(dict(history), dict(history.history))
        self.assertEqual([len(each) for each in history.values()], [3, 3, 3])
        with self.assertRaisesRegex(KeyError, "did you mean 'loss'"):
            history["los"]

    def test_unknown_names(self):
        model = made()
        data = gradus.data.from_tensor_slices(X)
        for text, call in (("fit has no argument `epoch`; did you mean `epochs`", lambda: model.fit(X, Y, epoch=3)),
                           ("compile has no argument `metric`; did you mean `metrics`", lambda: model.compile(metric=1)),
                           ("predict has no argument `batchsize`; did you mean `batch_size`", lambda: model.predict(X, batchsize=1)),
                           ("shuffle has no argument `buffersize`; did you mean `buffer_size`",
                            lambda: data.shuffle(buffersize=3)),
                           ("from_generator has no argument `output_sig`", lambda: data.from_generator(list, output_sig=1)),
                           ("function has no argument `jitcompile`", lambda: gradus.function(len, jitcompile=True))):
            with self.assertRaisesRegex(TypeError, text):
                call()
        for name, text in (("EarlyStopping", "early_stopping"), ("ModelCheckpoint", "checkpoints"), ("Dens", "'Dense'"),
                           ("Layer", "nn.Model")):
            with self.assertRaisesRegex(AttributeError, text):
                getattr(nn, name)
        with self.assertRaisesRegex(AttributeError, "did you mean 'reduce_sum'"):
            gradus.ops.reduce_sums


    def test_options_of_another_class(self):
        """Each option of compile and fit, with a value that it cannot be: a TypeError or ValueError that names it."""
        x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
        for name, value in (("epochs", "3"), ("epochs", 2.5), ("initial_epoch", "a"), ("steps_per_epoch", "a"), ("micro_batch", "a"),
                            ("validation_split", "a"), ("validation_freq", "a"), ("validation_freq", ["a"]), ("fast_dev_run", "a"),
                            ("batch_size", "a"), ("class_weight", {"a": 1}), ("class_weight", {0: "a"}), ("checkpoints", 5),
                            ("unbatched", "a")):
            model = nn.Sequential([nn.Dense(1)])
            model.compile(nn.SGD(), nn.MeanSquaredError())
            with self.subTest(name=name, value=value), self.assertRaisesRegex((TypeError, ValueError), name):
                model.fit(x, y, **({"verbose": False} | {name: value}))
        for name, value in (("optimizer", 3), ("loss", 3), ("metrics", [3]), ("weighted_metrics", [3])):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(TypeError, "compile: (optimizer|loss|metric): expected"):
                nn.Sequential([nn.Dense(1)]).compile(**({"optimizer": nn.SGD(), "loss": nn.MeanSquaredError()} | {name: value}))

    def test_messages_are_in_pythons_words(self):
        rows = gradus.data.from_tensor_slices((X, Y))
        for text, call in (("say unbatched=True", lambda: made().fit(rows)),
                           ("global_clipnorm=1 in the optimizer's options", lambda: made().fit(X * np.inf, Y, verbose=0))):
            with self.assertRaisesRegex((ValueError, ArithmeticError), text):
                call()


class Attributes(unittest.TestCase):
    def test_a_learning_rate_is_set(self):
        optimizer, v = nn.SGD(0.1), gradus.Variable(1.0)
        optimizer.learning_rate = 0.0
        optimizer.apply_gradients([(gradus.constant(1.0), v)])
        self.assertEqual((v.item(), optimizer.learning_rate, optimizer.learning_rate()), (1, 0, 0))
        optimizer.learning_rate = gradus.constant(0.5)
        optimizer.apply_gradients([(gradus.constant(1.0), v)])
        self.assertEqual((v.item(), float(optimizer.learning_rate)), (0.5, 0.5))
        optimizer.learning_rate.assign(0.25)
        self.assertEqual(optimizer.learning_rate * 2, 0.5)
        scheduled = nn.SGD(nn.CosineDecay(0.1, decay_steps=100))
        self.assertAlmostEqual(scheduled.learning_rate, 0.1)
        scheduled.learning_rate = 0.3
        self.assertEqual(scheduled.learning_rate, 0.3)
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            optimizer.learning_rate = -1.0

    def test_within_a_training(self):
        class Halves(nn.Callback):
            def on_epoch_end(self, epoch, logs):
                seen.append(float(self.optimizer.learning_rate))
                self.model.optimizer.learning_rate *= 0.5
        seen, model = [], made(optimizer=nn.SGD(0.5))
        model.fit(X, Y, epochs=3, verbose=0, callbacks=[Halves()])
        self.assertEqual(seen, [0.5, 0.25, 0.125])

    def test_what_would_be_ignored_is_refused(self):
        for made_, name in ((nn.SGD(0.1), "iterations_"), (nn.SGD(0.1), "note")):
            setattr(made_, name, 1)  # a name of the program's own
        for made_, name, text in ((nn.SGD(0.1), "set_learning_rate", "is a method"), (nn.SGD(0.1), "apply_gradients", "is a method"),
                                  (nn.Adam(0.1), "beta_1", "is an option"), (nn.Dropout(0.5), "rate", "is an option"),
                                  (nn.Dense(3), "units", "is an option"), (nn.AUC(), "result", "is a method")):
            with self.subTest(name), self.assertRaisesRegex(AttributeError, f"`{name}` {text}"):
                setattr(made_, name, 0.5)

    def test_classes_of_ones_own_decide(self):
        class Mine(nn.Dense):
            def __init__(self, units):
                super().__init__(units)
                self.units = units
        self.assertEqual(Mine(3).units, 3)
        layer = nn.Dense(2)
        layer.trainable = False
        self.assertFalse(copy.deepcopy(layer).trainable)


class Steps(unittest.TestCase):
    def own(self, **steps):
        class Own(nn.Model):
            def __init__(self):
                super().__init__()
                self.scores = nn.Dense(1, kernel_regularizer=nn.regularizers.l2(0.01))

            def call(self, x):
                return self.scores(x)

            def train_step(self, data):
                x, y = data
                with gradus.GradientTape() as tape:
                    loss = self.compute_loss(x, y, self(x, training=True))
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
                return {"loss": loss}
        for name, step in steps.items():
            setattr(Own, name, step)
        return Own()

    def test_optimizer_and_loss_of_compile(self):
        gradus.set_seed(3)
        own = self.own()
        self.assertIsNone(own.optimizer)
        optimizer = nn.SGD(0.1)
        own.compile(optimizer, nn.MeanSquaredError())
        self.assertIs(own.optimizer, optimizer)
        history = own.fit(X, Y, epochs=10, verbose=0, validation_data=(X, Y), shuffle=False)
        self.assertLess(history["loss"][-1], history["loss"][0])
        plain = self.own()
        del type(plain).train_step
        gradus.set_seed(3)
        plain.compile(nn.SGD(0.1), nn.MeanSquaredError())
        other = plain.fit(X, Y, epochs=10, verbose=0, validation_data=(X, Y), shuffle=False)
        np.testing.assert_allclose(history["loss"], other["loss"], rtol=1e-4)
        self.assertAlmostEqual(own.evaluate(X, Y)["loss"], history["val_loss"][-1], 5)

    def test_a_model_without_a_test_says_so(self):
        own = self.own()
        own.compile()
        for use in (lambda: own.evaluate(X, Y), lambda: own.fit(X, Y, validation_data=(X, Y))):
            with self.assertRaisesRegex(ValueError, r"define Own.test_step\(self, data\)"):
                use()
        with self.assertRaisesRegex(ValueError, "has no loss"):
            own.fit(X, Y, verbose=0)
        tested = self.own(test_step=lambda self, data: {"loss": gradus.constant(2.0)})
        tested.compile("sgd", "mse")
        self.assertEqual(tested.evaluate(X, Y), {"loss": 2.0})

    def test_an_optimizer_that_is_set_trains(self):
        model = made(optimizer=nn.SGD(0.0))
        model(X)
        before = model.predict(X)
        model.fit(X, Y, verbose=0)
        np.testing.assert_array_equal(model.predict(X), before)
        model.optimizer = nn.SGD(0.1)
        model.fit(X, Y, verbose=0)
        self.assertFalse(np.array_equal(model.predict(X), before))
        with self.assertRaisesRegex(AttributeError, "compile the model again"):
            model.loss = "mae"


class Parts(unittest.TestCase):
    def test_metrics_that_are_losses_are_called(self):
        y, p = X[:, :2], X[:, 2:]
        self.assertAlmostEqual(float(nn.MeanAbsoluteError()(y, p)), abs(y - p).mean(), 6)
        weights = np.arange(64, dtype="float32")
        self.assertAlmostEqual(float(nn.MeanAbsoluteError()(y, p, sample_weight=weights)),
                               (abs(y - p).mean(1) * weights).sum() / weights.sum(), 5)
        for made_of in (nn.RootMeanSquaredError, nn.LogCoshError, nn.AUC, nn.MeanIoU):
            metric = made_of(num_classes=2) if made_of is nn.MeanIoU else made_of()
            with self.assertRaisesRegex(TypeError, f"{made_of.__name__} is a metric"):
                metric(y, p)

    def test_metrics_by_keras_names(self):
        metric = nn.MeanAbsoluteError()
        metric.update_state(np.zeros(2, "float32"), np.ones(2, "float32"))
        self.assertEqual(metric.result(), 1)
        metric.reset_state()
        self.assertTrue(math.isnan(metric.result()))

    def test_functions_are_layers(self):
        model = nn.Sequential([nn.Dense(3), gradus.ops.relu, lambda x: x * 2])
        model.add(gradus.tensorflow.nn.relu)
        self.assertTrue((model(X).numpy() >= 0).all())
        model.compile("sgd", "mse")
        model.fit(X, X[:, :3], verbose=0)
        np.testing.assert_array_equal(nn.Sequential(layers=[abs]).predict(X), abs(X))
        for layers, text in (([nn.Dense(1), 3], "layer 1: expected a layer or a function of a tensor, got int"),
                             ([nn.Dense], r"the class Dense: make one, Dense\(...\)"), (["relu"], "got str")):
            with self.assertRaisesRegex(TypeError, text):
                nn.Sequential(layers)
        with self.assertRaisesRegex(TypeError, "got str"):
            nn.Sequential().add("relu")


if __name__ == "__main__":
    unittest.main()
