"""Cycles of Python's objects that lead through the engine are collected, and nothing that is in use is."""
import copy
import gc
import unittest
import weakref

import numpy as np

import gradus
import gradus.tensorflow as tf
from gradus import nn

D = tf.data.Dataset


class Holder:
    """Something with methods, which keeps what calls them."""

    def plus(self, x):
        return x + 1

    def is_small(self, x):
        return x < 2

    def add(self, state, x):
        return state + x, state

    def data(self, *fields):
        return D.range(2)

    def numbers(self):
        yield from range(4)


def numbers_of(make):
    """A holder with a data set that calls its methods."""
    def made():
        holder = Holder()
        holder.kept = make(holder)
        assert len(list(holder.kept)) > 0
        return holder
    return made


def window_of(holder):
    return D.range(4).group_by_window(lambda x: x % 2 + 0 * holder.plus(x), lambda key, window: window.batch(2), 2)


STAGES = {
    "map": lambda h: D.range(4).map(h.plus),
    "map in Python": lambda h: D.range(4).map(lambda x: tf.py_function(h.plus, [x], tf.int64)),
    "filter": lambda h: D.range(4).filter(h.is_small),
    "take_while": lambda h: D.range(4).take_while(h.is_small),
    "scan": lambda h: D.range(4).scan(tf.constant(0, tf.int64), h.add),
    "flat_map": lambda h: D.range(4).flat_map(h.data),
    "interleave": lambda h: D.range(4).interleave(h.data, cycle_length=2),
    "group_by_window": window_of,
    "generator": lambda h: D.from_generator(h.numbers, output_signature=tf.TensorSpec([], tf.int32)),
    "stages behind it": lambda h: D.range(8).map(h.plus).shuffle(4).batch(2).repeat(2).prefetch(1),
    "zip": lambda h: D.zip((D.range(4).map(h.plus), D.range(3))),
    "concatenate": lambda h: D.range(4).concatenate(D.range(2).map(h.plus)),
    "windows": lambda h: D.range(4).map(h.plus).window(2).flat_map(lambda w: w.batch(2)),
    "bucket": lambda h: D.from_generator(lambda: ([1.0] * n for n in (1, 2, 3)), output_signature=tf.TensorSpec(
        [None], tf.float32)).bucket_by_sequence_length(lambda x: tf.shape(x)[0] + 0 * h.plus(1), [2], [1, 1]),
    "strings": lambda h: D.from_tensor_slices(["a", "b"]).map(lambda x: (x, h.plus(1))),
}


def open_pass():
    holder = Holder()
    holder.kept = iter(D.range(40).map(holder.plus).prefetch(2))
    next(holder.kept)
    return holder


def function_of_a_method():
    holder = Holder()
    holder.kept = gradus.function(holder.plus)
    holder.kept(gradus.constant(1.0))
    return holder


class Net(nn.Model):
    def __init__(self, make):
        super().__init__()
        self.first, self.layer = nn.Dense(3), make(self)

    def call(self, x):
        return self.layer(self.first(x))

    def twice(self, x, *others):
        return 2 * x


def model_of(make):
    def made():
        net = Net(make)
        net.compile("sgd", "mse")
        net.fit(np.ones((4, 3), np.float32), np.ones((4, 2), np.float32), verbose=False)
        net.predict(np.ones((4, 3), np.float32))
        net.self = net
        return net
    return made


LAYERS = {
    "activation, a method": lambda net: nn.Dense(2, activation=net.twice),
    "activation, a closure": lambda net: nn.Dense(2, activation=lambda x: net.twice(x)),
    "lambda": lambda net: nn.Lambda(lambda x: net.twice(x[:, :2])),
    "initializer": lambda net: nn.Dense(2, kernel_initializer=lambda shape: net.twice(tf.ones(shape))),
    "loop of layers": lambda net: nn.Sequential([nn.Dense(2)]),
}


def layer_without_a_model():
    holder = Holder()
    holder.kept = nn.Dense(2, activation=holder.plus)
    holder.kept(tf.ones([1, 2]))
    return holder


def variables():
    module = tf.Module()
    module.v, module.self = tf.Variable(1.0), module
    return module


MAKERS = ({f"data set: {name}": numbers_of(make) for name, make in STAGES.items()} |
          {f"model: {name}": model_of(make) for name, make in LAYERS.items()} |
          {"a pass": open_pass, "a function": function_of_a_method, "a layer": layer_without_a_model, "a module": variables})


class Cycles(unittest.TestCase):
    def test_are_collected(self):
        for name, make in MAKERS.items():
            gone = weakref.ref(make())
            gc.collect()
            gc.collect()
            self.assertIsNone(gone(), name)


class InUse(unittest.TestCase):
    """The collector runs while nothing but the engine needs a function."""

    def test_by_a_pass_whose_data_set_is_gone(self):
        for name, make in STAGES.items():
            holder = Holder()
            wanted = len(list(make(holder)))
            reading = iter(make(holder))
            del holder
            gc.collect()
            self.assertEqual(len(list(reading)), wanted, name)

    def test_by_stages_behind_it(self):
        def made():
            holder = Holder()
            inner = D.range(3).map(lambda x: holder.plus(x))
            return D.range(2).flat_map(lambda _: D.range(2).map(lambda x: x * 2).concatenate(inner)).batch(2)
        data = made()
        gc.collect()
        for _ in range(2):
            self.assertEqual([x.tolist() for x in data], [[0, 2], [1, 2], [3, 0], [2, 1], [2, 3]])

    def test_by_layers_of_a_sequential(self):
        def made():
            holder = Holder()
            return nn.Sequential([nn.Dense(2, activation=lambda x: holder.plus(x), kernel_initializer="zeros")])
        model = made()
        gc.collect()
        self.assertEqual(model(tf.ones([1, 2])).tolist(), [[1, 1]])

    def test_by_copies_of_layers(self):
        def made():
            holder = Holder()
            holder.kept = nn.Dense(2, activation=lambda x: holder.plus(x), kernel_initializer="zeros")
            holder.kept(tf.ones([1, 2]))
            return copy.copy(holder.kept), copy.deepcopy(holder.kept), nn.Sequential([holder.kept])
        copies = made()
        gc.collect()
        for layer in copies:
            self.assertEqual(layer(tf.ones([1, 2])).tolist(), [[1, 1]])

    def test_by_a_compiled_function_with_a_layer(self):
        def made():
            holder = Holder()
            layer = nn.Dense(2, activation=lambda x: holder.plus(x), kernel_initializer="zeros")
            holder.kept = layer
            return gradus.function(lambda x: layer(x))
        f = made()
        gc.collect()
        for rows in (1, 2, 3):
            self.assertEqual(f(tf.ones([rows, 2])).tolist(), [[1, 1]] * rows)


if __name__ == "__main__":
    unittest.main()
