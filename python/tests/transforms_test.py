"""Functions of functions: branches and loops as ops, gradients of one's own, derivatives."""
import unittest

import numpy as np

import gradus


class Transforms(unittest.TestCase):
    def test_cond(self):
        for x in (2.0, -2.0):
            y = gradus.cond(gradus.constant(x) > 0, lambda: {"a": gradus.constant(x), "b": 1}, lambda: {"a": gradus.constant(-x), "b": 2})
            self.assertEqual((y["a"].item(), y["b"].item()), (2, 1 if x > 0 else 2))
        with self.assertRaisesRegex(TypeError, "two kinds"):
            gradus.cond(gradus.constant(True), lambda: (1, 2), lambda: [1])

    def test_loops(self):
        i, total = gradus.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t + i), (0, 0))
        self.assertEqual((i.item(), total.item()), (5, 10))
        state, sums = gradus.scan(lambda s, x: (s + x, s * 2.0), 0.0, [1.0, 2.0, 3.0])
        self.assertEqual((state.item(), sums.tolist()), (6, [0, 2, 6]))
        self.assertEqual(gradus.vectorized_map(lambda row: (row * row).sum(), [[1.0, 2.0], [3.0, 4.0]]).tolist(), [5, 25])

    def test_a_gradient_of_its_own(self):
        @gradus.custom_gradient
        def f(x, y):
            return x * y, lambda dy: (dy * 100, None)
        x, y = gradus.Variable(2.0), gradus.Variable(3.0)
        with gradus.GradientTape() as tape:
            z = f(x, y)
        found = tape.gradient(z, [x, y], unconnected_gradients="zero")
        self.assertEqual((z.item(), found[0].item(), found[1].item()), (6, 100, 0))
        with self.assertRaisesRegex(TypeError, "custom_gradient"):
            gradus.custom_gradient(lambda x: x)(1.0)
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            def fails(dy):
                raise ZeroDivisionError("mine")
            with gradus.GradientTape() as tape:
                z = gradus.custom_gradient(lambda x: (x * 2, fails))(x)
            tape.gradient(z, x)
        g = gradus.recompute_grad(lambda x: x * x)
        self.assertEqual(gradus.value_and_gradient(g, 3.0)[1].item(), 6)

    def test_derivatives(self):
        x = np.float32([1, 2])
        np.testing.assert_array_equal(gradus.jacobian(lambda v: v * v, x).numpy(), [[2, 0], [0, 4]])
        np.testing.assert_array_equal(gradus.hessian(lambda v: (v * v * v).sum(), x).numpy(), [[6, 0], [0, 12]])
        value, slope = gradus.jvp(lambda v: v * v, x, np.float32([1, 1]))
        self.assertEqual((value.tolist(), slope.tolist()), ([1, 4], [2, 4]))


if __name__ == "__main__":
    unittest.main()
