"""GradientTape: targets, sources, None, and what is refused."""
import unittest

import numpy as np

import gradus


class Tapes(unittest.TestCase):
    def test_gradients_in_the_nest_of_sources(self):
        x, v = gradus.constant(3.0), gradus.Variable(2.0)
        with gradus.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * v
        self.assertEqual(tape.gradient(y, x).item(), 12)
        self.assertEqual(tape.gradient(y, v).item(), 9)
        found = tape.gradient(y, {"b": [x, v], "a": (v,)})
        self.assertEqual((found["b"][0].item(), found["b"][1].item(), found["a"][0].item()), (12, 9, 9))
        self.assertEqual([g.item() for g in tape.gradient(y, [v, v])], [9, 9])

    def test_none_where_there_is_no_path(self):
        x, v, w = gradus.constant(3.0), gradus.Variable(2.0), gradus.Variable(5.0)
        with gradus.GradientTape(persistent=True) as tape:
            y = v * 2
        self.assertIsNone(tape.gradient(y, x))
        self.assertIsNone(tape.gradient(y, w))
        found = tape.gradient(y, [w, v])
        self.assertIsNone(found[0])
        self.assertEqual(found[1].item(), 2)
        self.assertEqual(tape.gradient(y, [w, v], unconnected_gradients="zero")[0].item(), 0)
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            tape.gradient(y, w, unconnected_gradients="error")

    def test_targets_that_are_no_scalars_are_summed(self):
        x = gradus.Variable([1.0, 2.0])
        with gradus.GradientTape(persistent=True) as tape:
            y, z = x * x, 3 * x
        self.assertEqual(tape.gradient(y, x).tolist(), [2, 4])
        self.assertEqual(tape.gradient([y, z], x).tolist(), [5, 7])
        self.assertEqual(tape.gradient(y, x, output_gradients=[1.0, 10.0]).tolist(), [2, 40])
        self.assertEqual(tape.gradient({"y": y, "z": z}, [x])[0].tolist(), [5, 7])
        np.testing.assert_array_equal(tape.jacobian(y, x).numpy(), [[2, 0], [0, 4]])

    def test_higher_orders(self):
        x = gradus.Variable(3.0)
        with gradus.GradientTape() as outer:
            with gradus.GradientTape() as inner:
                y = x * x * x
            slope = inner.gradient(y, x)
        self.assertEqual((slope.item(), outer.gradient(slope, x).item()), (27, 18))

    def test_what_is_recorded(self):
        x, v = gradus.Variable(3.0), gradus.Variable(1.0)
        with gradus.GradientTape() as tape:
            y = x * x
            with tape.stop_recording():
                z = x * 5
            y = y + z
        self.assertEqual(tape.gradient(y, x).item(), 6)
        with gradus.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = x * v
        self.assertEqual([None if g is None else g.item() for g in tape.gradient(y, [x, v])], [1, None])
        with gradus.GradientTape() as tape:
            y = x * x
            tape.reset()
            y = x * 2
        self.assertEqual(tape.gradient(y, x).item(), 2)

    def test_a_tape_that_is_over_records_nothing(self):
        x = gradus.Variable(3.0)
        traces = []

        @gradus.function
        def square(y):
            traces.append(1)
            return y * y * x
        square(gradus.constant(1.0))
        with gradus.GradientTape(persistent=True) as tape:
            y = x * x
        traces.clear()
        square(gradus.constant(2.0))
        self.assertEqual(traces, [])
        self.assertEqual(tape.gradient(y, x).item(), 6)

    def test_losses_add_up(self):
        w = gradus.Variable(2.0)
        total = None
        for rows in (np.float32([1, 2, 3]), np.float32([4])):
            with gradus.GradientTape() as tape:
                loss = gradus.Loss.mean((w * rows) ** 2)
            found = tape.gradient(loss, [w])
            if total is None:
                total = found
            else:
                total += found
        np.testing.assert_allclose(total[0].item(), 2 * 2.0 * (1 + 4 + 9 + 16) / 4)
        self.assertEqual(total.weight.item(), 4)
        self.assertAlmostEqual(float(loss + 1.0), 65)

    def test_refuses(self):
        x = gradus.Variable(1.0)
        tape = gradus.GradientTape()
        with self.assertRaisesRegex(gradus.errors.InvalidArgumentError, "recorded nothing"):
            tape.gradient(x, x)
        with tape:
            y = x * 2
        tape.gradient(y, x)
        with self.assertRaisesRegex(gradus.errors.InvalidArgumentError, "persistent=True"):
            tape.gradient(y, x)
        with gradus.GradientTape() as tape:
            y = x * 2
        for target, source in ((y, "x"), (1.0, x), (y, np.zeros(2))):
            with self.assertRaises(TypeError):
                tape.gradient(target, source)
        self.assertEqual(tape.gradient(y, x).item(), 2)


if __name__ == "__main__":
    unittest.main()
