"""Operators, methods and subscripts of tensors, against NumPy's."""
import operator
import unittest

import numpy as np

import gradus

SUBSCRIPTS = [0, -1, (0, 1), (slice(None), 1), (Ellipsis, 2), (slice(None), None, 0), (slice(0, 1), slice(None, None, -1)),
              (Ellipsis, slice(1, 3)), (None, Ellipsis), [1, 0], (slice(None), [2, 0]), (np.array([[0, 1]]), slice(None), [1, 2]),
              (slice(5, 1),), (slice(None, None, 2), slice(-2, None), slice(3, 0, -2)), (), (Ellipsis, None), ([True, False],),
              np.arange(24).reshape(2, 3, 4) % 5 == 0]


class Operators(unittest.TestCase):
    def test_are_those_of_numpy(self):
        a, b = np.float32([[1, 2], [3.5, -4]]), np.float32([2, 0.5])
        for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt,
                   operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
            for x, y in ((a, b), (a, 2), (2, a), (a, 0.5), (a, [1, 2])):
                with self.subTest(op=op.__name__, y=y):
                    given = [gradus.constant(v) if isinstance(v, np.ndarray) else v for v in (x, y)]
                    found = op(*given)
                    want = op(np.asarray(x, np.float32), np.asarray(y, np.float32))
                    np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)
                    self.assertEqual(found.dtype, want.dtype)
        np.testing.assert_allclose((gradus.constant(b) ** 2).numpy(), b ** 2)
        np.testing.assert_allclose((2 ** gradus.constant(b)).numpy(), 2 ** b)
        np.testing.assert_allclose((gradus.constant(a) @ gradus.constant(a)).numpy(), a @ a)
        np.testing.assert_array_equal((-gradus.constant(a)).numpy(), -a)
        np.testing.assert_array_equal(abs(gradus.constant(a)).numpy(), abs(a))

    def test_of_integers_and_booleans(self):
        a, b = np.int32([7, -7]), np.int32([2, 3])
        x, y = gradus.constant(a), gradus.constant(b)
        for op in (operator.add, operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor):
            np.testing.assert_array_equal(op(x, y).numpy(), op(a, b))
        self.assertEqual((x / y).dtype, gradus.float64)
        np.testing.assert_array_equal((x / y).numpy(), a / b)
        np.testing.assert_array_equal((x / 2).numpy(), a / 2)
        np.testing.assert_array_equal((x & 3).numpy(), a & 3)
        t = gradus.constant([True, False])
        np.testing.assert_array_equal((~t | False).numpy(), [False, True])
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            x * 1.5

    def test_beside_what_is_no_tensor(self):
        x = gradus.constant([1.0])
        self.assertFalse(x == None)  # noqa: E711
        self.assertTrue(x != "text")
        for op in (operator.add, operator.lt, operator.matmul):
            with self.assertRaises(TypeError):
                op(x, "text")
        with self.assertRaises(TypeError):
            hash(x)
        self.assertEqual({x.ref(): 1}[x.ref()], 1)
        self.assertIs(type(x.ref().deref()), gradus.Tensor)

    def test_values(self):
        x = gradus.constant(2.5)
        self.assertEqual((float(x), int(x), x.item(), f"{x:.2f}", str(x)), (2.5, 2, 2.5, "2.50", "2.5"))
        self.assertEqual([10, 20, 30][gradus.constant(1)], 20)
        self.assertTrue(gradus.constant(3))
        self.assertFalse(gradus.constant(False))
        self.assertEqual(repr(gradus.constant([1, 2])), "<gradus.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>")
        for wrong in (lambda: float(gradus.constant([1.0, 2.0])), lambda: bool(gradus.constant([True, False])),
                      lambda: operator.index(gradus.constant(1.0)), lambda: len(gradus.constant(1))):
            with self.assertRaises((ValueError, TypeError)):
                wrong()

    def test_shape(self):
        n = np.arange(6.0).reshape(2, 3)
        x = gradus.constant(n)
        self.assertEqual((x.shape, x.ndim, x.size, len(x)), ((2, 3), 2, 6, 2))
        np.testing.assert_array_equal(x.T.numpy(), n.T)
        np.testing.assert_array_equal(x.reshape((3, -1)).numpy(), n.reshape(3, -1))
        self.assertEqual([row.tolist() for row in x], n.tolist())
        self.assertEqual(x.astype("int64").dtype, gradus.int64)
        for axis in (None, 0, -1, (0, 1)):
            np.testing.assert_array_equal(x.sum(axis).numpy(), n.sum(axis))
        np.testing.assert_array_equal(x.mean(1, keepdims=True).numpy(), n.mean(1, keepdims=True))


class Subscripts(unittest.TestCase):
    def test_read_what_numpy_reads(self):
        n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        x = gradus.constant(n)
        for key in SUBSCRIPTS:
            with self.subTest(key=key):
                np.testing.assert_array_equal(x[key].numpy(), n[key])

    def test_stand_for_their_values(self):
        x = gradus.constant([10, 20, 30])
        i = gradus.constant(1)
        self.assertEqual((x[i].item(), x[gradus.constant([2, 0])].tolist(), x[i:].tolist()), (20, [30, 10], [20, 30]))
        self.assertEqual(x[gradus.constant([True, False, True])].tolist(), [10, 30])
        self.assertEqual(x[np.int64(2)].item(), 30)

    def test_refuse_others(self):
        x = gradus.constant([[1, 2]])
        for key, error in [(5, IndexError), (1.5, TypeError), ("a", TypeError), ((0, 0, 0), ValueError), (True, TypeError),
                           ([0.5], IndexError), ((Ellipsis, Ellipsis), ValueError), (slice("a", None), TypeError)]:
            with self.subTest(key=key):
                with self.assertRaises(error):
                    x[key].numpy()


if __name__ == "__main__":
    unittest.main()
