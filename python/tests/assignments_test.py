"""Variables that several threads assign, and references to tensors and Variables."""
import threading
import unittest

import numpy as np

import gradus.tensorflow as tf


def in_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "threads wait for each other"


class Threads(unittest.TestCase):
    def test_no_update_is_lost(self):
        v, w = tf.Variable(0.0), tf.Variable(np.zeros(3, "float32"))

        def work():
            for _ in range(300):
                v.assign_add(1.0)
                w.assign_sub([1.0, 2.0, 3.0])
        in_threads(4, work)
        self.assertEqual(float(v), 1200)
        self.assertEqual(w.numpy().tolist(), [-1200, -2400, -3600])

    def test_assignments_and_elements_are_no_error(self):
        v = tf.Variable(np.zeros(4, "float32"))

        def work():
            for i in range(200):
                v[i % 4] = float(i)
                v.assign(v + 0.0)
        in_threads(4, work)
        self.assertEqual(v.shape, (4,))

    def test_values_that_ask_python_meanwhile(self):
        v = tf.Variable(0.0)

        def work():
            for _ in range(50):
                v.assign_add(tf.py_function(lambda: float(np.float32(1)), [], tf.float32))
        in_threads(3, work)
        self.assertEqual(float(v), 150)

    def test_generators_draw_other_numbers_in_each_thread(self):
        generator, drawn = tf.random.Generator.from_seed(3), []
        in_threads(4, lambda: drawn.extend(float(generator.uniform([])) for _ in range(50)))
        self.assertEqual(len(set(drawn)), 200)


class References(unittest.TestCase):
    def test_a_reference_keeps_its_variable(self):
        self.assertEqual(len({tf.Variable(1.0).ref() for _ in range(20)}), 20)
        v = tf.Variable(2.0, name="kept")
        key = v.ref()
        self.assertEqual(key, v.ref())
        self.assertEqual(hash(key), hash(v.ref()))
        self.assertIs(key.deref(), v)
        self.assertNotEqual(key, tf.Variable(2.0).ref())
        self.assertNotEqual(key, 1)
        del v
        self.assertEqual(float(key.deref()), 2)
        key.deref().assign_add(1.0)
        self.assertEqual(float(key.deref()), 3)

    def test_of_tensors(self):
        self.assertEqual(len({(tf.ones([1]) * i).ref() for i in range(20)}), 20)
        x = tf.constant([1.0, 2.0])
        self.assertEqual(x.ref(), x.ref())
        self.assertEqual(x.ref().deref().numpy().tolist(), [1, 2])


if __name__ == "__main__":
    unittest.main()
