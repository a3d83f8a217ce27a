"""Calls of generated functions: signatures, docstrings, keyword arguments, and errors in Python's types."""
import inspect
import json
import pathlib
import unittest

import gradus
import numpy as np
from gradus import nn, ops, random

FACTS = json.loads((pathlib.Path(gradus.__file__).parents[1] / "generated/names.json").read_text(encoding="utf-8"))


def module_named(name):
    module = gradus
    for part in name.split("."):
        module = getattr(module, part)
    return module


class Documents(unittest.TestCase):
    def test_functions_have_docstrings_and_signatures(self):
        for full_name, facts in FACTS["functions"].items():
            with self.subTest(function=full_name):
                function = getattr(module_named(facts["module"]), full_name.split("::")[-1])
                self.assertTrue(function.__doc__)
                inspect.signature(function)

    def test_a_signature_shows_keyword_arguments_and_defaults(self):
        signature = inspect.signature(ops.conv2d)
        self.assertEqual(list(signature.parameters)[:2], ["x", "filters"])
        self.assertEqual(signature.parameters["padding"].kind, inspect.Parameter.KEYWORD_ONLY)
        self.assertEqual(signature.parameters["padding"].default, "valid")
        self.assertIn("strides: one per spatial dimension", ops.conv2d.__doc__)

    def test_classes_have_docstrings_and_signatures(self):
        for name, made in vars(nn).items():
            if isinstance(made, type) and issubclass(made, (nn.Module, nn.Optimizer, nn.LossFunction, nn.Metric)):
                with self.subTest(name=name):
                    self.assertTrue(made.__doc__)
        self.assertEqual(list(inspect.signature(nn.Dense).parameters)[:2], ["units", "activation"])
        self.assertEqual(list(inspect.signature(nn.Adam).parameters)[:3], ["learning_rate", "beta_1", "beta_2"])


class Mistakes(unittest.TestCase):
    def check(self, error, text, function, *arguments, **named):
        with self.assertRaisesRegex(error, text):
            function(*arguments, **named)

    def test_an_unknown_keyword_names_the_nearest(self):
        x = np.ones([1, 4, 4, 1], "float32")
        self.check(TypeError, "conv2d has no argument `stride`; did you mean `strides`", ops.conv2d, x, x, stride=1)
        self.check(TypeError, "reduce_sum has no argument `axes`; did you mean `axis`", ops.reduce_sum, x, axes=1)
        self.check(TypeError, "Dense has no argument `use_bais`; did you mean `use_bias`", nn.Dense, 3, use_bais=True)
        self.check(TypeError, "Adam has no argument `beta1`; did you mean `beta_1`", nn.Adam, beta1=0.5)

    def test_wrong_counts(self):
        self.check(TypeError, "exp: argument `x` .a tensor. is missing", ops.exp)
        self.check(TypeError, "exp takes 1 arguments by place, 2 were given", ops.exp, 1.0, 2.0)
        self.check(TypeError, "exp: argument `x` was given twice", ops.exp, 1.0, x=2.0)

    def test_wrong_types(self):
        x = np.ones([2, 3], "float32")
        self.check(TypeError, "argument `axis`: expected an int or a sequence of ints, got str", ops.reduce_sum, x, axis="0")
        self.check(TypeError, "argument `keepdims`: expected True or False, got int", ops.reduce_sum, x, keepdims=1)
        self.check(TypeError, "argument `x`: expected a tensor, got str", ops.exp, "1")
        self.check(TypeError, "argument `x`: expected a tensor, got NoneType", ops.exp, None)
        self.check(TypeError, "argument `dtype`: expected a dtype, got int", ops.cast, x, 32)
        self.check(ValueError, "argument `padding`: expected 'valid' or 'same', got 'sane'; did you mean `same`",
                   ops.conv2d, np.ones([1, 4, 4, 1], "float32"), np.ones([2, 2, 1, 1], "float32"), padding="sane")
        self.check(ValueError, "expected an int from -?[0-9]+ to [0-9]+, got 10000000000", ops.cumsum, x, 10**10)
        self.check(ValueError, "there is no activation 'rleu'; did you mean `relu`", nn.Dense, 3, activation="rleu")

    def test_wrong_dtypes_and_shapes_are_errors_of_the_library(self):
        x = np.ones([2, 3], "float32")
        self.check(gradus.errors.InvalidArgumentError, "matmul: inner dimensions differ", ops.matmul, x, x)
        self.check(gradus.errors.InvalidArgumentError, "exp", ops.exp, np.ones(3, "int32"))
        self.check(gradus.errors.OutOfRangeError, "axis", ops.reduce_sum, x, axis=5)

    def test_forms_that_do_not_fit_are_listed(self):
        with self.assertRaises(TypeError) as caught:
            ops.where([True], "a", "b")
        self.assertIn("Its forms:\n  where(condition)", str(caught.exception))


class Arguments(unittest.TestCase):
    def test_enums_are_texts_in_any_case(self):
        x = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
        filters = np.ones([3, 3, 1, 1], "float32")
        same = ops.conv2d(x, filters, padding="SAME")
        self.assertEqual(tuple(same.shape), (1, 4, 4, 1))
        self.assertEqual(tuple(ops.conv2d(x, filters).shape), (1, 2, 2, 1))

    def test_none_leaves_an_option_out(self):
        x = np.ones([2, 3], "float32")
        self.assertEqual(float(ops.reduce_sum(x, axis=None, keepdims=None)), 6)

    def test_numbers_of_numpy(self):
        x = np.ones([2, 3], "float32")
        self.assertEqual(tuple(ops.reduce_sum(x, axis=np.int64(1)).shape), (2,))
        self.assertEqual(tuple(ops.reduce_sum(x, axis=np.array([0, 1]), keepdims=np.bool_(True)).shape), (1, 1))
        self.assertAlmostEqual(float(ops.leaky_relu(-1.0, alpha=np.float32(0.5))), -0.5)

    def test_a_number_takes_the_dtype_beside_it(self):
        for dtype in ("float64", "float16", "int64", "uint8"):
            x = np.ones(3, dtype)
            self.assertEqual(ops.maximum(x, 2).numpy().dtype, dtype)
            self.assertEqual(ops.maximum(2, x).numpy().dtype, dtype)
            self.assertEqual(ops.add(x, 2).numpy().dtype, dtype)

    def test_results_of_structs_are_named_tuples(self):
        values, indices = ops.top_k(np.array([3.0, 1.0, 2.0]), 2)
        self.assertEqual(values.numpy().tolist(), [3, 2])
        factors = ops.qr(np.eye(3))
        self.assertEqual(factors._fields, ("q", "r"))
        self.assertIsInstance(factors, tuple)
        self.assertTrue(type(factors).__doc__)

    def test_lists_of_tensors(self):
        parts = ops.split(np.arange(6.0), 3)
        self.assertEqual([p.numpy().tolist() for p in parts], [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(ops.concat(parts, axis=0).numpy().tolist(), [0, 1, 2, 3, 4, 5])
        with self.assertRaises(TypeError):
            ops.concat(np.ones(3))

    def test_random_numbers_by_seed(self):
        first, again = random.normal([3], seed=7), random.normal([3], seed=7)
        self.assertEqual(first.numpy().tolist(), again.numpy().tolist())


if __name__ == "__main__":
    unittest.main()
