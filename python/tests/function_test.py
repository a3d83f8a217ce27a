"""gradus.function: traces, branches of Python, nests, sizes, numbers, and what is refused."""
import collections
import copy
import dataclasses
import gc
import unittest
import warnings
import weakref

import numpy as np

import gradus

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Batch:
    x: gradus.Tensor
    scale: int


def last_name(error):
    """The function of Python in which the traceback ends."""
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    return frame.tb_frame.f_code.co_name


def counted(f, **options):
    """f as a compiled function, and the list that grows each time that Python runs."""
    runs = []

    def body(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)
    return gradus.function(body, **options), runs


class Traces(unittest.TestCase):
    def test_one_for_each_kind_of_call(self):
        f, runs = counted(lambda x: x * x + 1)
        for x in (2.0, 3.0):
            self.assertEqual(f(gradus.constant(x)).item(), x * x + 1)
        self.assertEqual(len(runs), 1)
        self.assertEqual(f(gradus.constant([1, 2])).tolist(), [2, 5])
        self.assertEqual(f(np.float64([1])).dtype, gradus.float64)
        self.assertEqual(len(runs), 3)
        self.assertIn("dispatch", f.explain() + "dispatch")

    def test_python_branches_on_values(self):
        @gradus.function
        def f(x):
            if x.sum() > 0 and x[0] > 0:
                return x * 2
            return x / 2
        for x in ([1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, 5.0]):
            want = np.float32(x) * 2 if sum(x) > 0 and x[0] > 0 else np.float32(x) / 2
            np.testing.assert_array_equal(f(gradus.constant(x)).numpy(), want)

    def test_python_loops_on_values(self):
        @gradus.function
        def collatz(n):
            steps = 0
            while n > 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            return n, steps
        self.assertEqual([tuple(int(v) for v in collatz(gradus.constant(k))) for k in (6, 1, 7)], [(1, 8), (1, 0), (1, 16)])

    def test_variables_are_assigned(self):
        v = gradus.Variable([0.0, 0.0])

        @gradus.function
        def f(x):
            v.assign_add(x)
            return v * 2
        for _ in range(3):
            found = f(gradus.constant([1.0, 2.0]))
        self.assertEqual((found.tolist(), v.value().tolist()), ([6, 12], [3, 6]))

    def test_a_training_step(self):
        w = gradus.Variable([1.0, 2.0])

        @gradus.function
        def step(x):
            with gradus.GradientTape() as tape:
                loss = gradus.Loss.mean((x * w) ** 2)
            found = tape.gradient(loss, [w])
            w.assign_sub(0.1 * found[0])
            return loss, found
        loss, found = step(np.ones(2, np.float32))
        self.assertEqual(loss.item(), 2.5)
        self.assertEqual(found[0].tolist(), [1, 2])
        np.testing.assert_allclose(w.numpy(), [0.9, 1.8], rtol=1e-6)

    def test_nests_in_and_out(self):
        f, runs = counted(lambda d, k=2: {"pair": Pair(d["x"] * k, [d["y"][0], None]), "text": "same"})
        for _ in range(2):
            found = f({"y": (gradus.constant(2), gradus.constant(4)), "x": gradus.constant(1.5)}, k=3)
            self.assertIsInstance(found["pair"], Pair)
            self.assertEqual((found["pair"].a.item(), found["pair"].b[0].item(), found["pair"].b[1], found["text"]), (4.5, 2, None, "same"))
        g, more = counted(lambda b: Batch(b.x * b.scale, b.scale))
        self.assertEqual(g(Batch(gradus.constant(2.0), 3)).x.item(), 6)
        self.assertEqual(g(Batch(gradus.constant(5.0), 3)).x.item(), 15)
        self.assertEqual((len(runs), len(more)), (1, 1))
        self.assertEqual(f({"x": gradus.constant(1.0), "y": [gradus.constant(1)]})["pair"].a.item(), 2)

    def test_statics_by_value_and_by_identity(self):
        class Thing:
            factor = 2.0
        f, runs = counted(lambda x, *statics: x * 2)
        thing, x = Thing(), gradus.constant(1.0)
        warnings.simplefilter("ignore")  # of retraces
        self.addCleanup(warnings.resetwarnings)
        for statics in ((thing,), ("a",), (b"a",), (None,), (True,), (1,), (1.0,), (Thing(),), (len,), (slice(1),)):
            f(x, *statics)
            before = len(runs)
            f(x, *(copy.copy(statics)))
            self.assertEqual(len(runs), before, statics)
        self.assertEqual(len(runs), 10)
        gone = weakref.ref(thing)
        del thing, statics
        gc.collect()
        self.assertIsNone(gone())

    def test_methods_and_closures(self):
        class Scaled:
            def __init__(self, factor):
                self.factor = gradus.Variable(factor)

            @gradus.function
            def __call__(self, x):
                return x * self.factor
        a, b, x = Scaled(2.0), Scaled(3.0), gradus.constant(5.0)
        self.assertEqual([a(x).item(), b(x).item(), a(x).item()], [10, 15, 10])
        a.factor.assign(7.0)
        self.assertEqual(a(x).item(), 35)
        f = gradus.function(a.__call__)
        self.assertEqual(f(x).item(), 35)

    def test_decorator(self):
        @gradus.function(name="doubled")
        def twice(x):
            """Doubles."""
            return x + x
        self.assertEqual((twice.__doc__, twice.__name__, repr(twice)), ("Doubles.", "twice", "<gradus.Function doubled>"))
        self.assertEqual(twice(2).item(), 4)

    def test_is_collected(self):
        def make():
            f = gradus.function(lambda x: f(x - 1) if x > 100 else x)
            f(gradus.constant(1.0))
            return weakref.ref(f)
        gone = make()
        gc.collect()
        self.assertIsNone(gone())


class Sizes(unittest.TestCase):
    def test_open_sizes_serve_all(self):
        f, runs = counted(lambda x: (x * x).sum(), input_signature=[gradus.TensorSpec([None, 3])])
        for n in range(1, 8):
            self.assertEqual(f(np.ones((n, 3), np.float32)).item(), 3 * n)
        self.assertIn("1 variant,", f.explain())
        seen = len(runs)
        f(np.ones((3, 3), np.float32))
        self.assertEqual(len(runs), seen)
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            f(np.ones((2, 4), np.float32))

    def test_sizes_may_be_computed_with(self):
        f, _ = counted(lambda x: x.reshape((x.shape[0] * x.shape[1],))[: x.shape[0]], input_signature=[gradus.TensorSpec([None, 3])])
        for n in (2, 5, 9):
            self.assertEqual(f(np.arange(3 * n, dtype=np.float32).reshape(n, 3)).tolist(), list(range(n)))
        self.assertIn("1 variant,", f.explain())

    def test_a_size_that_is_read_is_fixed(self):
        f, _ = counted(lambda x: sum(x[i] for i in range(x.shape[0])))
        for n in (2, 3, 4, 3):
            self.assertEqual(f(np.arange(n, dtype=np.float32)).item(), n * (n - 1) / 2)
        g = gradus.function(lambda x: x * len(x), input_signature=[gradus.TensorSpec([None])])
        for n in (2, 3, 2):
            self.assertEqual(g(np.ones(n, np.float32)).tolist(), [n] * n)


class Refused(unittest.TestCase):
    def test_numbers_that_vary_are_told_once(self):
        f = gradus.function(lambda x, k: x * k, name="scaled")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for k in range(12):
                self.assertEqual(f(gradus.constant(2.0), float(k)).item(), 2 * k)
        self.assertEqual(len([w for w in said if "gradus.constant" in str(w.message)]), 1)

    def test_exceptions_come_out_as_themselves(self):
        class Mine(Exception):
            pass
        for error in (KeyError("mine"), Mine(1), KeyboardInterrupt(), SystemExit(3), StopIteration()):
            def f(x):
                raise error
            try:
                gradus.function(f)(gradus.constant(1.0))
                self.fail("no exception")
            except type(error) as found:
                self.assertIs(found, error)
                self.assertEqual(last_name(found), "f")

    def test_an_interrupt_is_not_swallowed_at_another_size(self):
        runs = []

        @gradus.function
        def f(x):
            runs.append(1)
            if len(runs) >= 2:
                raise KeyboardInterrupt
            return x + 1
        f(np.ones(3, np.float32))
        with self.assertRaises(KeyboardInterrupt):
            f(np.ones(4, np.float32))

    def test_errors_of_the_library_keep_their_traceback(self):
        @gradus.function
        def f(x):
            return x + gradus.constant([1.0, 2.0, 3.0])
        try:
            f(gradus.constant([1.0, 2.0]))
            self.fail("no exception")
        except gradus.errors.InvalidArgumentError as found:
            self.assertEqual(last_name(found), "f")

    def test_tensors_of_a_finished_trace(self):
        kept = []

        @gradus.function
        def leaky(x):
            kept.append(x * 2)
            return x
        leaky(gradus.constant(1.0))
        for use in (lambda: kept[0].numpy(), lambda: (kept[0] + 1).numpy(), lambda: float(kept[0])):
            with self.assertRaises(gradus.errors.OpError):
                use()
        self.assertIn("traced", repr(kept[0]))

    def test_variables_made_inside(self):
        @gradus.function
        def f(x):
            return x * gradus.Variable(2.0)
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            f(gradus.constant(1.0))
        made = []

        @gradus.function
        def g(x):
            if not made:
                made.append(gradus.Variable(2.0))
            return x * made[0]
        self.assertEqual([g(gradus.constant(3.0)).item() for _ in range(2)], [6, 6])

    def test_recursion_and_numpy_inside(self):
        f = gradus.function(lambda x: f(x))
        with self.assertRaises((gradus.errors.InvalidArgumentError, RecursionError)):
            f(gradus.constant(1.0))
        with self.assertRaises(gradus.errors.OpError):
            gradus.function(lambda x: np.asarray(x) + 1)(gradus.constant(1.0))
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(ValueError, "no end"):
            gradus.function(lambda x: 1)(endless)

    def test_what_is_no_function(self):
        with self.assertRaisesRegex(TypeError, "cannot be called"):
            gradus.function(3)


if __name__ == "__main__":
    unittest.main()
