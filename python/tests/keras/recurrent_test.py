"""LSTM and GRU with masks are the engine's fused ops, with the results of Keras's own loop."""
import importlib.util
import itertools
import os
import unittest
from unittest import mock

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "gradus")
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import keras  # noqa: E402
from keras import layers  # noqa: E402

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 6, 3)).astype("float32")
MASK = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], bool)


def stepped(layer, states):
    """The layer's outputs and states by its cell, in NumPy's loop over times, as Keras's backends of NumPy and JAX have it."""
    order = range(X.shape[1])[::-1] if layer.go_backwards else range(X.shape[1])
    states, outputs = [np.asarray(state) for state in states], []
    before = states[0]
    for t in order:
        counts = MASK[:, t, None]
        output, following = layer.cell(X[:, t], states)
        before = np.where(counts, output, 0 if layer.zero_output_for_mask else before)
        states = [np.where(counts, new, old) for new, old in zip(following, states)]
        outputs.append(before)
    return (np.stack(outputs, 1) if layer.return_sequences else outputs[-1]), states


class Masks(unittest.TestCase):
    def made(self, kind, **options):
        layer = kind(5, return_state=True, bias_initializer="uniform", **options)
        layer.build(X.shape)
        return layer

    def test_results_are_those_of_the_cell(self):
        for kind, sequences, backwards, zeroes, given in itertools.product((layers.LSTM, layers.GRU), *[(False, True)] * 4):
            with self.subTest(kind=kind, sequences=sequences, backwards=backwards, zeroes=zeroes, given=given):
                layer = self.made(kind, return_sequences=sequences, go_backwards=backwards, zero_output_for_mask=zeroes)
                count = 2 if kind is layers.LSTM else 1
                states = [RNG.normal(size=(4, 5)).astype("float32") if given else np.zeros((4, 5), "float32")
                          for _ in range(count)]
                with mock.patch("keras.src.backend.rnn", side_effect=AssertionError("the loop, not the fused op")):
                    output, *last = layer(X, mask=MASK, initial_state=states if given else None)
                want, want_states = stepped(layer, states)
                np.testing.assert_allclose(output, want, rtol=1e-5, atol=1e-6)
                for a, b in zip(last, want_states, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_the_loop_gives_the_same(self):
        """recurrent_dropout, which is 0 here, sends layers through backend.rnn."""
        for kind, zeroes in itertools.product((layers.LSTM, layers.GRU), (False, True)):
            fused = self.made(kind, return_sequences=True, zero_output_for_mask=zeroes)
            loop = self.made(kind, return_sequences=True, zero_output_for_mask=zeroes)
            loop.use_cudnn = False
            loop.set_weights(fused.get_weights())
            states = [RNG.normal(size=(4, 5)).astype("float32") for _ in fused.cell.state_size] \
                if kind is layers.LSTM else RNG.normal(size=(4, 5)).astype("float32")
            for a, b in zip(fused(X, mask=MASK, initial_state=states), loop(X, mask=MASK, initial_state=states), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_gradients_are_those_of_the_loop(self):
        for kind in (layers.LSTM, layers.GRU):
            found = []
            fused = self.made(kind, return_sequences=True)
            for use in (True, False):
                layer = self.made(kind, return_sequences=True)
                layer.use_cudnn = use
                layer.set_weights(fused.get_weights())
                with gradus.GradientTape() as tape:
                    loss = sum(keras.ops.sum(each ** 2) for each in layer(X, mask=MASK))
                found.append(tape.gradient(loss, [v._value for v in layer.trainable_variables]))
            for a, b in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_a_model_with_embedding_and_bidirectional_trains(self):
        words = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [6, 7, 8, 1, 2], [3, 0, 0, 0, 0]])
        losses = []
        for use in ("auto", False):
            keras.utils.set_random_seed(1)
            model = keras.Sequential([
                layers.Embedding(9, 4, mask_zero=True),
                layers.Bidirectional(layers.LSTM(3, return_sequences=True, use_cudnn=use)),
                layers.GRU(3, use_cudnn=use), layers.Dense(1)])
            model.compile("adam", "mse")
            losses.append(model.fit(words, np.arange(4.0), epochs=3, shuffle=False, verbose=0).history["loss"])
        np.testing.assert_allclose(*losses, rtol=1e-5)

    def test_without_a_layer_the_loop_is_chosen(self):
        from keras_gradus.src import gru
        with self.assertRaises(NotImplementedError):
            gru(X, np.zeros((4, 5), "float32"), MASK, RNG.normal(size=(3, 15)).astype("float32"),
                RNG.normal(size=(5, 15)).astype("float32"), None, keras.activations.tanh, keras.activations.sigmoid)


if __name__ == "__main__":
    unittest.main()
