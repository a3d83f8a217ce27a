"""Mistakes: each is an error of TensorFlow's class or of Python's own that says what was expected, never a crash or silence."""
import functools
import unittest

import numpy as np

import gradus
import gradus.tensorflow as tf
from gradus import nn

D = tf.data.Dataset
A = np.arange(12, dtype=np.float32).reshape(3, 4)
InvalidArgument, OutOfRange = tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError


class OtherVariable:
    def assign_add(self, x):
        pass

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


class Array:
    def __init__(self, make):
        self.make = make

    def __array__(self, dtype=None, copy=None):
        return self.make()


def raising(error):
    raise error


def endless(kind):
    nest = kind()
    nest.append(nest) if isinstance(nest, list) else nest.update(a=nest)
    return nest


def deep():
    return functools.reduce(lambda inner, _: [inner], range(100_000), 1)


def generated(make, spec=tf.TensorSpec([], tf.int32)):
    return list(D.from_generator(make, output_signature=spec))


def closed():
    generator = (i for i in range(3))
    generator.close()
    return generator


def left(use):
    """use() of a tensor of a trace that is over."""
    kept = []

    @tf.function
    def traced(x):
        kept.append(x * 2)
        return x
    traced(tf.constant(1.0))
    return use(kept[0])


def recursive():
    @tf.function
    def f(x):
        return f(x - 1)
    return f(tf.constant(1.0))


def mutual():
    @tf.function
    def f(x):
        return g(x)

    @tf.function
    def g(x):
        return f(x)
    return f(tf.constant(1.0))


def within(make):
    return tf.function(lambda x: make(x) * 2)(tf.constant(1.0))


def twice(persistent):
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=persistent) as tape:
        y = v * v
    return [tape.gradient(y, v) for _ in range(2)]


def entered_twice():
    tape = tf.GradientTape()
    with tape, tape:
        pass


def fitted(x, y):
    model = nn.Sequential([nn.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=False)


V = tf.Variable([1.0, 2.0])
ONE = np.ones((3, 1), np.float32)
ROWS = {
    # dtypes, shapes
    "dtypes": (lambda: tf.constant(1.0) + tf.constant(1), InvalidArgument, "dtypes differ"),
    "dtypes of products": (lambda: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.float64)), InvalidArgument, "dtypes differ"),
    "inner sizes": (lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), InvalidArgument, "inner dimensions"),
    "shapes": (lambda: tf.ones([2]) + tf.ones([3]), InvalidArgument, "do not broadcast"),
    "reshape": (lambda: tf.reshape(tf.ones([6]), [4, 2]), InvalidArgument, "6 elements"),
    "too many axes": (lambda: tf.constant(np.zeros((1,) * 20)), InvalidArgument, "at most 8"),
    "axis": (lambda: tf.reduce_sum(tf.ones([2]), axis=3), OutOfRange, "axis 3"),
    "axis, a float": (lambda: tf.reduce_sum(tf.ones([2]), axis=1.5), TypeError, "axis"),
    "index": (lambda: tf.ones([3])[5], IndexError, "index 5"),
    "index, a float": (lambda: tf.ones([3])[1.5], TypeError, "float"),
    "indices": (lambda: tf.gather(tf.ones([3]), [5]).numpy(), IndexError, "index 5"),
    # objects that are no tensors
    "ragged": (lambda: tf.constant([[1, 2], [3]]), ValueError, "ragged"),
    "ragged within": (lambda: tf.constant([[[1], [2]], [[3]]]), ValueError, "ragged"),
    "number beside a list": (lambda: tf.constant([1, [2]]), ValueError, "ragged"),
    "object": (lambda: tf.constant(object()), TypeError, "class object"),
    "None": (lambda: tf.constant(None), TypeError, "class NoneType"),
    "None in a list": (lambda: tf.constant([1, None]), TypeError, "NoneType"),
    "set": (lambda: tf.constant({1, 2}), TypeError, "class set"),
    "generator": (lambda: tf.constant(i for i in range(3)), TypeError, "class generator"),
    "complex": (lambda: tf.constant(1j), TypeError, "class complex"),
    "array of objects": (lambda: tf.constant(np.array([object()])), TypeError, "array of objects"),
    "array of dates": (lambda: tf.constant(np.array(["2020-01-01"], "datetime64[D]")), TypeError, "datetime64"),
    "array of records": (lambda: tf.constant(np.zeros(2, [("x", "f4")])), TypeError, "x"),
    "array with a mask": (lambda: tf.constant(np.ma.array([1.0, 2.0], mask=[0, 1])), TypeError, "filled"),
    "wide floats": (lambda: tf.constant(np.ones(2, np.longdouble)), TypeError, "no tensor has"),
    "str": (lambda: tf.sqrt("a"), TypeError, "got str"),
    "other variable": (lambda: tf.constant(OtherVariable()), TypeError, "variable of another library"),
    "other variable in an op": (lambda: tf.sqrt(OtherVariable()), TypeError, "variable of another library"),
    "__array__ that raises": (lambda: tf.constant(Array(lambda: raising(KeyError("mine")))), KeyError, "mine"),
    "__array__ without array": (lambda: tf.constant(Array(lambda: "text")), ValueError, "array"),
    "int": (lambda: tf.constant(2**70), OverflowError, "too big"),
    "int below 0": (lambda: tf.constant(-1, tf.uint8), OutOfRange, "-1"),
    "strings in a function": (lambda: tf.function(lambda s: s)(tf.constant("a")), TypeError, "host"),
    # nests without end
    "list in itself": (lambda: tf.constant(endless(list)), RecursionError, ""),
    "nest in itself": (lambda: tf.function(lambda x: 1)(endless(list)), ValueError, "contains itself"),
    "dict in itself": (lambda: tf.function(lambda x: 1)(endless(dict)), ValueError, "contains itself"),
    "flatten of a dict in itself": (lambda: tf.nest.flatten(endless(dict)), RecursionError, ""),
    "deep list": (lambda: tf.constant(deep()), RecursionError, ""),
    "deep nest": (lambda: tf.function(lambda x: 1)(deep()), ValueError, "200"),
    # generators
    "generator that raises": (lambda: generated(lambda: (1 // (1 - i) for i in range(3))), ZeroDivisionError, ""),
    "generator that is no iterator": (lambda: generated(lambda: 3), TypeError, "not iterable"),
    "generator of other shapes": (lambda: generated(lambda: iter([[1, 2]])), InvalidArgument, "element 0: field 0"),
    "generator of texts": (lambda: generated(lambda: iter(["a"])), TypeError, "class str"),
    "generator of too many parts": (lambda: generated(lambda: iter([(1, 2, 3)]), (tf.TensorSpec([], tf.int32),) * 2), TypeError,
                                    "3 parts"),
    # traces
    "value of a trace": (lambda: left(lambda x: x.numpy()), InvalidArgument,
                         rf"function traced \(bad_input_test.py, line {left.__code__.co_firstlineno + 4}\) was traced"),
    "op on it": (lambda: left(lambda x: x + 1), InvalidArgument, r"function traced \(bad_input_test.py, line"),
    "in another function": (lambda: left(lambda x: tf.function(lambda y: x + y)(tf.constant(1.0))), InvalidArgument, "traced"),
    "assigned": (lambda: left(lambda x: tf.Variable(1.0).assign(x)), InvalidArgument, "traced"),
    "Variable of a trace": (lambda: within(tf.Variable), InvalidArgument, "outside of traced functions"),
    "Variable in a trace": (lambda: within(lambda x: tf.Variable(1.0) * x), InvalidArgument, "destroyed while the function"),
    "assignment in map": (lambda: list(D.range(3).map(lambda x: V.assign_add([1.0, 1.0]))), InvalidArgument, "map: its function assigns"),
    "assignment in filter": (lambda: list(D.range(3).filter(lambda x: V.assign_add([1.0, 1.0])[0] > 0)), InvalidArgument,
                             "filter: its function assigns"),
    "recursion": (recursive, RecursionError, ""),
    "functions that call each other": (mutual, RecursionError, ""),
    "loop of other shapes": (lambda: tf.function(lambda: tf.while_loop(
        lambda x: tf.reduce_sum(x) < 10, lambda x: tf.concat([x, x], 0), [tf.ones([1])]))(), InvalidArgument, "while_loop"),
    "branches of other shapes": (lambda: tf.function(lambda x: tf.cond(
        x > 0, lambda: tf.ones([2]), lambda: tf.ones([3])))(tf.constant(1.0)), InvalidArgument, "cond"),
    # tapes and Variables
    "tape that recorded nothing": (lambda: tf.GradientTape().gradient(tf.constant(1.0), [V]), InvalidArgument, "recorded nothing"),
    "tape that is used up": (lambda: twice(False), InvalidArgument, "used up"),
    "tape within itself": (entered_twice, ValueError, "recording already"),
    "assignment of another shape": (lambda: V.assign([1.0, 2.0, 3.0]), InvalidArgument, "expected f32\\[2\\]"),
    "assignment of another dtype": (lambda: V.assign(np.array([1.0, 2.0])), InvalidArgument, "f64"),
    # values of tensors
    "bool of several": (lambda: bool(tf.ones([3])), ValueError, "reduce_all"),
    "len of a scalar": (lambda: len(tf.constant(1)), TypeError, "scalar"),
    "hash": (lambda: hash(tf.constant(1)), TypeError, "unhashable"),
    "index by a float": (lambda: [1, 2][tf.constant(1.0)], TypeError, "integer"),
    "writing": (lambda: tf.ones([2]).numpy().fill(0), ValueError, "read-only"),
    # data sets, models
    "batch of 0": (lambda: D.range(3).batch(0), InvalidArgument, "positive"),
    "batch of a text": (lambda: D.range(3).batch("3"), ValueError, "batch_size is a whole number"),
    "map that gives nothing": (lambda: list(D.range(3).map(lambda x: None)), TypeError, "NoneType"),
    "map of too many arguments": (lambda: list(D.range(3).map(lambda x, y: x)), TypeError, "missing 1"),
    "map that raises": (lambda: list(D.range(3).map(lambda x: 1 // 0)), ZeroDivisionError, ""),
    "units": (lambda: nn.Dense("a"), TypeError, "units"),
    "keyword": (lambda: nn.Dense(3, activatio="relu"), TypeError, "did you mean `activation`"),
    "activation": (lambda: nn.Dense(3, activation="relux"), ValueError, "did you mean `relu`"),
    "fit before compile": (lambda: nn.Sequential([nn.Dense(1)]).fit(ONE, ONE), RuntimeError, "compile"),
    "fit of other rows": (lambda: fitted(ONE, ONE[:2]), InvalidArgument, "2 rows"),
    "fit of nothing": (lambda: fitted(ONE[:0], ONE[:0]), (tf.errors.DataLossError, InvalidArgument), "empty|no (batch|element|row)"),
    "fit of NaN": (lambda: fitted(np.nan * ONE, ONE), tf.errors.OpError, "not finite"),
    "device": (lambda: tf.device("gpux:0").__enter__(), InvalidArgument, "gpux:0"),
    "DLPack": (lambda: gradus.from_dlpack(object()), AttributeError, "__dlpack__"),
}


class Mistakes(unittest.TestCase):
    def test_each_is_an_error(self):
        for name, (call, kind, text) in ROWS.items():
            with self.subTest(name), self.assertRaisesRegex(kind, text):
                call()

    def test_a_failure_leaves_what_it_was(self):
        self.assertEqual(V.value().tolist(), [1, 2])
        self.assertEqual(float(tf.function(lambda x: x + 1)(tf.constant(1.0))), 2)


class Arrays(unittest.TestCase):
    """Arrays of any layout are copied."""

    def test_layouts(self):
        read_only = A.copy()
        read_only.flags.writeable = False
        for name, array in {"gaps": A[::2], "reversed": A[:, ::-1], "transposed": A.T, "swapped": A.astype(">f4"), "read-only": read_only,
                            "Fortran": np.asfortranarray(A), "empty": A[:0], "none": np.array(3.0), "broadcast":
                            np.broadcast_to(A[0], (5, 4)), "subclass": A.view(type("Own", (np.ndarray,), {}))}.items():
            for dtype in (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.uint16, np.uint64, np.bool_, np.longlong,
                          array.dtype):
                given = array.astype(dtype, order="K") if dtype is not array.dtype else array
                made = tf.constant(given)
                self.assertEqual(made.numpy().tolist(), given.tolist(), (name, dtype))
                self.assertEqual(made.dtype.name, given.dtype.newbyteorder("=").name)
                self.assertEqual(tuple(made.shape), given.shape)

    def test_a_copy_is_a_copy(self):
        array = A.copy()
        made = tf.constant(array)
        array[:] = 0
        self.assertEqual(made.numpy().tolist(), A.tolist())

    def test_closed_generators_are_empty(self):
        self.assertEqual(generated(closed), [])


if __name__ == "__main__":
    unittest.main()
