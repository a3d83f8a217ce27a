"""Variables: cells with an identity, assignments, copies."""
import copy
import gc
import pickle
import unittest
import weakref

import numpy as np

import gradus


class Variables(unittest.TestCase):
    def test_hold_a_value(self):
        v = gradus.Variable([1.0, 2.0], name="v")
        self.assertEqual((v.shape, v.dtype, v.name, v.trainable), ((2,), gradus.float32, "v", True))
        self.assertEqual((v + 1).tolist(), [2, 3])
        self.assertEqual((1 - v).tolist(), [0, -1])
        self.assertEqual(v[1].item(), 2)
        self.assertIn("'v'", repr(v))
        self.assertEqual(np.asarray(v).tolist(), [1, 2])
        self.assertEqual(gradus.Variable(lambda: np.zeros(2)).dtype, gradus.float64)
        self.assertEqual(gradus.Variable(1, dtype=gradus.float32).dtype, gradus.float32)

    def test_are_assigned(self):
        v = gradus.Variable([1.0, 2.0])
        before = v.numpy()
        self.assertIs(v.assign([3, 4]), v)
        v.assign_add(gradus.constant([1.0, 1.0]))
        v.assign_sub(1)
        self.assertEqual((v.value().tolist(), before.tolist()), ([3, 4], [1, 2]))
        v[0] = 9
        v[1:] = gradus.constant([8.0])
        self.assertEqual(v.value().tolist(), [9, 8])
        for wrong in ([1.0], np.zeros(2, np.int32), gradus.constant([1, 2])):
            with self.assertRaises(ValueError):
                v.assign(wrong)
        with self.assertRaises(IndexError):
            v[5] = 1
        self.assertEqual(v.value().tolist(), [9, 8])

    def test_have_one_object(self):
        v, w = gradus.Variable(1.0), gradus.Variable(1.0)
        with gradus.GradientTape() as tape:
            y = v * w
        gradients = tape.gradient(y, [v, w])
        self.assertIs(gradients.variables[0], v)
        self.assertIs(gradients.variables[1], w)
        self.assertNotEqual(v.ref(), w.ref())

    def test_are_copied_and_pickled(self):
        v = gradus.Variable([1.0, 2.0], name="v", trainable=False)
        for made in (copy.copy(v), copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
            self.assertEqual((made.name, made.trainable, made.value().tolist()), ("v", False, [1, 2]))
            made.assign([5, 6])
            self.assertEqual(v.value().tolist(), [1, 2])

    def test_end_with_their_last_reference(self):
        v = gradus.Variable(1.0)
        gone = weakref.ref(v)
        del v
        gc.collect()
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
