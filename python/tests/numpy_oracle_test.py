"""Every generated op of one or two tensors against NumPy, in every dtype; ops that NumPy has not against stored values."""
import json
import pathlib
import unittest
import warnings

import gradus
import ml_dtypes
import numpy as np

import oracle_table as table

DATA = pathlib.Path(__file__).resolve().parent / "data"
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 4e-6, "float64": 1e-10}


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values(interval, dtype, seed, count=24):
    """Values of an interval: for integers every whole number of it, again and again."""
    low, high = interval
    if dtype == "bool":
        return np.random.default_rng(seed).integers(0, 2, count).astype(bool)
    if dtype in table.FLOATS:
        return np.random.default_rng(seed).uniform(low, high, count).astype(dtype_of(dtype))
    low = max(int(np.ceil(low)), 0 if dtype in table.UNSIGNED else -128)
    return np.random.default_rng(seed).integers(low, int(high), count, endpoint=True).astype(dtype)


def wide(x):
    """Floats as float64, in which NumPy computes."""
    return x.astype(np.float64) if x.dtype.name in table.FLOATS else x


def differs(got, want, dtype):
    """A text about the first difference; empty: none."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, NumPy has {want.shape}"
    if got.dtype.name in table.FLOATS:
        got, want = got.astype(np.float64), want.astype(np.float64)
        scale = max(1.0, float(np.max(np.abs(want), initial=0)))
        far = ~(np.abs(got - want) <= TOLERANCE[dtype] * np.maximum(np.abs(want), 0.05 * scale))
        far &= ~(np.isnan(got) & np.isnan(want)) & (got != want)
    else:
        far = got != want
    if not far.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(far)[0])
    return f"at {at}: {got[at]}, NumPy has {want[at]}"


def run(call):
    """The result, or None where the op refuses the dtype."""
    try:
        return call().numpy()
    except gradus.errors.InvalidArgumentError:
        return None


class Elementwise(unittest.TestCase):
    def test_each_in_each_dtype(self):
        for name, (function, dtypes, *intervals) in table.ELEMENTWISE.items():
            for dtype in table.ALL:
                with self.subTest(op=name, dtype=dtype):
                    operands = [values(interval, dtype, k) for k, interval in enumerate(intervals)]
                    got = run(lambda: getattr(gradus.ops, name)(*operands))
                    self.assertEqual(got is not None, dtype in dtypes,
                                     f"{name} {'refuses' if got is None else 'takes'} {dtype}")
                    if got is None:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = function(*map(wide, operands))
                    self.assertEqual(differs(got, want, dtype), "")

    def test_a_number_beside_a_tensor(self):
        for name, (function, dtypes, *intervals) in table.ELEMENTWISE.items():
            if len(intervals) != 2 or "float64" not in dtypes:
                continue
            with self.subTest(op=name):
                x = values(intervals[0], "float64", 0)
                got = getattr(gradus.ops, name)(x, 2.0).numpy()
                self.assertEqual(differs(got, function(x, np.full_like(x, 2.0)), "float64"), "")


class Whole(unittest.TestCase):
    def test_each_in_each_dtype(self):
        for name, (call, function, dtypes) in table.WHOLE.items():
            op = getattr(gradus.ops, name)
            for dtype in table.ALL:
                with self.subTest(op=name, dtype=dtype):
                    x = values((0.5, 2), dtype, 3, 16).reshape(4, 4)
                    got = run(lambda: call(OpOnArrays(op), x))
                    self.assertEqual(got is not None, dtype in dtypes,
                                     f"{name} {'refuses' if got is None else 'takes'} {dtype}")
                    if got is not None:
                        self.assertEqual(differs(got, function(wide(x)), dtype), "")


class OpOnArrays:
    """An op as rows of the table call it; another op by its name."""

    def __init__(self, op):
        self.op = op

    def __call__(self, *arguments, **named):
        return self.op(*arguments, **named)

    def __getattr__(self, name):
        return getattr(gradus.ops, name)


class StoredValues(unittest.TestCase):
    def test_special_functions(self):
        for name, row in json.loads((DATA / "special_values.json").read_text(encoding="utf-8")).items():
            for dtype in ("float32", "float64"):
                with self.subTest(op=name, dtype=dtype):
                    operands = [np.array(operand, dtype) for operand in row["operands"]]
                    got = getattr(gradus.ops, name)(*operands).numpy()
                    self.assertEqual(got.dtype, dtype)
                    tolerance = 3e-5 if dtype == "float32" else 1e-9
                    np.testing.assert_allclose(got, row["value"], rtol=tolerance, atol=tolerance)


class Completeness(unittest.TestCase):
    """An op of one or two tensors is in the table, has stored values, or stands in without_oracle.txt with the reason."""

    def test_each_op_has_an_oracle(self):
        facts = json.loads((pathlib.Path(gradus.__file__).parents[1] / "generated/names.json").read_text())
        stored = json.loads((DATA / "special_values.json").read_text(encoding="utf-8"))
        lines = (DATA / "without_oracle.txt").read_text(encoding="utf-8").splitlines()
        without = {line.split(":")[0] for line in lines if line and not line.startswith("#")}
        known = set(table.ELEMENTWISE) | set(table.WHOLE) | set(stored)
        ops = {name for name, function in facts["functions"].items() if function["module"] == "ops"}
        self.assertEqual(sorted(known - ops), [], "in the table and no op")
        self.assertEqual(sorted(without & known), [], "has an oracle and is listed as without")
        self.assertEqual(sorted(without - ops), [], "listed and no op")
        self.assertEqual(sorted(ops - known - without), [], "neither in the table nor listed")


class Slopes(unittest.TestCase):
    """Gradients by a tape against central differences."""

    NAMES = ("sin", "tanh", "exp", "log", "sqrt", "sigmoid", "gelu", "softplus", "mish", "erf", "lgamma", "square",
             "atan", "selu", "reciprocal", "cbrt", "sinc", "log_softmax", "cumsum", "reduce_logsumexp", "norm", "sort")

    def test_against_differences(self):
        x = np.random.default_rng(5).uniform(0.3, 1.7, 6)
        weights = np.random.default_rng(6).uniform(0.5, 1.5, 6)
        step = 1e-6
        for name in self.NAMES:
            with self.subTest(op=name):
                def loss(at, op=getattr(gradus.ops, name)):
                    return gradus.ops.reduce_sum(op(at) * weights)
                at = gradus.Variable(x)
                with gradus.GradientTape() as tape:
                    y = loss(at)
                got = np.asarray(tape.gradient(y, at))
                want = [(float(loss(x + step * e)) - float(loss(x - step * e))) / (2 * step) for e in np.eye(6)]
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


if __name__ == "__main__":
    unittest.main()
