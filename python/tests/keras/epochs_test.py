"""Epochs over arrays are a loop over numbers of rows, with the results of a loop over batches, bit for bit."""
import contextlib
import importlib.util
import io
import os
import unittest
import unittest.mock

import numpy as np

os.environ["KERAS_BACKEND"] = "gradus"
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import keras  # noqa: E402
from keras import layers  # noqa: E402
from keras_gradus.src import epochs  # noqa: E402

RANDOM = np.random.RandomState(0)
ROWS, LABELS, WEIGHTS = RANDOM.rand(150, 6), RANDOM.randint(0, 3, 150), RANDOM.rand(150)


class ForBatches(keras.callbacks.Callback):
    """Asks for batches, and so for the loop over them."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(batch)


def classifier(**options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dropout(0.2), layers.Dense(3, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **options)
    return model


def with_two_inputs():
    keras.utils.set_random_seed(1)
    first, second = keras.Input((6,), name="first"), keras.Input((6,), name="second")
    both = layers.concatenate([first, layers.Dense(4)(second)])
    outputs = {"one": layers.Dense(1, name="one")(both), "two": layers.Dense(2, name="two")(both)}
    model = keras.Model({"first": first, "second": second}, outputs)
    model.compile("sgd", {"one": "mse", "two": "mae"})
    return model


@contextlib.contextmanager
def epochs_of_rows():
    """The number of epochs that are run over numbers of rows."""
    runs, logs = [], epochs.WholeArrays.logs
    with unittest.mock.patch.object(epochs.WholeArrays, "logs", lambda *args: (runs.append(1), logs(*args))[1]):
        yield runs


def fitted(make, data, **options):
    """(history, weights, epochs over rows)"""
    model = make()
    with epochs_of_rows() as runs:
        history = model.fit(*data, verbose=0, **{"epochs": 3, "batch_size": 32, **options}).history
    return history, model.get_weights(), len(runs)


class Epochs(unittest.TestCase):
    def test_they_are_those_of_batches(self):
        named = {"first": ROWS, "second": ROWS[:, ::-1]}, {"one": ROWS[:, :1], "two": ROWS[:, 1:3]}
        for make, data, options in (
                (classifier, (ROWS, LABELS), {}), (classifier, (ROWS, LABELS), {"shuffle": False, "batch_size": 50}),
                (classifier, (ROWS, LABELS), {"shuffle": "batch"}), (classifier, (ROWS[:20], LABELS[:20]), {}),
                (classifier, (np.asfortranarray(ROWS, np.float32), LABELS.astype("uint8")), {"sample_weight": WEIGHTS}),
                (classifier, (ROWS, LABELS), {"class_weight": {0: 1.0, 1: 0.5, 2: 2.0}, "validation_split": 0.2}),
                (classifier, (ROWS, LABELS), {"validation_data": (ROWS[:40], LABELS[:40], WEIGHTS[:40])}),
                (with_two_inputs, named, {}), (with_two_inputs, named, {"validation_split": 0.3})):
            with self.subTest(**options):
                history, weights, runs = fitted(make, data, **options)
                seen = ForBatches()
                want, want_weights, of_batches = fitted(make, data, callbacks=[seen], **options)
                validates = any(name.startswith("val") for name in options)
                self.assertEqual((runs, of_batches), (6, 3) if validates else (3, 0))
                self.assertGreater(len(seen.seen), 0)
                self.assertEqual(history, want)
                for found, expected in zip(weights, want_weights, strict=True):
                    np.testing.assert_array_equal(found, expected)

    def test_other_data_and_callbacks_take_batches(self):
        hooked = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
        generated = ((ROWS[:32], LABELS[:32]) for _ in range(6))
        for data, options in (((generated,), {"steps_per_epoch": 2}), ((ROWS, LABELS), {"steps_per_epoch": 2}),
                              ((ROWS, LABELS), {"callbacks": [keras.callbacks.TerminateOnNaN()]}),
                              ((ROWS, LABELS), {"callbacks": [hooked]})):
            self.assertEqual(fitted(classifier, data, **options)[2], 0)
        self.assertEqual(fitted(lambda: classifier(run_eagerly=True), (ROWS, LABELS))[2], 0)

    def test_callbacks_of_epochs_do_not_need_batches(self):
        saved = keras.callbacks.ModelCheckpoint("/dev/null/none.keras", save_freq="epoch")
        calls = []
        named = [keras.callbacks.EarlyStopping(patience=9, monitor="loss"), keras.callbacks.ReduceLROnPlateau("loss"),
                 keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: calls.append(logs["loss"])),
                 keras.callbacks.CSVLogger(os.devnull)]
        history, _, runs = fitted(classifier, (ROWS, LABELS), callbacks=named)
        self.assertEqual((runs, calls), (3, history["loss"]))
        self.assertFalse(epochs._asks_for_batches(saved, "train"))
        self.assertTrue(epochs._asks_for_batches(keras.callbacks.ModelCheckpoint("x.keras", save_freq=3), "train"))

    def test_the_last_step_is_shown(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            model = classifier()
            model.fit(ROWS, LABELS, batch_size=50, epochs=1, verbose=1)
            model.evaluate(ROWS, LABELS, batch_size=30, verbose=1)
        self.assertIn("3/3", text.getvalue())
        self.assertIn("5/5", text.getvalue())

    def test_a_step_that_stops_training_is_the_last_one(self):
        class Stops(keras.Sequential):
            def train_step(self, data):
                self.stop_training = True  # while it is traced
                return super().train_step(data)
        keras.utils.set_random_seed(1)
        model = Stops([layers.Dense(3)])
        model.compile("sgd", "mse")
        model.fit(ROWS, ROWS[:, :3], epochs=3, batch_size=30, verbose=0)
        self.assertEqual(int(model.optimizer.iterations.numpy()), 1)
        self.assertEqual(len(model.history.epoch), 1)

    def test_arrays_of_other_lengths_need_no_other_program(self):
        traces = []

        class Counted(keras.Sequential):
            def train_step(self, data):
                traces.append(data[0].shape[0])
                return super().train_step(data)
        model = Counted([layers.Dense(3)])
        model.compile("sgd", "mse")
        for count in (60, 90, 150):
            model.fit(ROWS[:count], ROWS[:count, :3], batch_size=30, verbose=0)
        self.assertEqual(traces, [30])


if __name__ == "__main__":
    unittest.main()
