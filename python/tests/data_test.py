"""Data sets: nests, functions of elements, generators, and passes that end early."""
import subprocess
import sys
import threading
import unittest

import numpy as np

import gradus
from gradus import data


class Datasets(unittest.TestCase):
    def test_elements_are_nests(self):
        x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
        found = list(data.from_tensor_slices({"x": x, "y": y}).batch(4))
        self.assertEqual([e["x"].shape for e in found], [(4, 2), (2, 2)])
        self.assertEqual(found[1]["y"].tolist(), [4, 5])
        pairs = data.from_tensor_slices((x, y))
        self.assertEqual(len(pairs), 6)
        self.assertEqual(pairs.element_spec, (gradus.TensorSpec([2]), gradus.TensorSpec([], gradus.int64)))
        self.assertEqual([int(b) for a, b in data.zip(data.range(3), data.range(5).skip(1))], [1, 2, 3])
        self.assertEqual([e.tolist() for e in data.from_tensor_slices([[1, 2], [3, 4]])], [[1, 2], [3, 4]])

    def test_functions_are_traced(self):
        runs = []

        def scaled(x, y):
            runs.append(1)
            return {"x": x * 2, "y": y + 1}
        d = data.from_tensor_slices((np.arange(1000, dtype=np.float32), np.arange(1000))).map(scaled).shuffle(100, seed=1)
        d = d.batch(64).prefetch()
        self.assertEqual(sum(float(e["x"].sum()) for e in d), 999000)
        self.assertEqual(sum(int(e["y"].sum()) for e in d), 500500)
        self.assertLess(len(runs), 20)
        kept = data.range(10).filter(lambda i: i % 3 == 0)
        self.assertEqual([int(i) for i in kept.repeat(2)], [0, 3, 6, 9] * 2)
        with self.assertRaises(TypeError):
            len(kept)

    def test_python_branches_in_a_map(self):
        d = data.from_tensor_slices(np.arange(6, dtype=np.float32)).map(lambda x: x * 2 if x > 2 else -x).prefetch(2)
        self.assertEqual([float(x) for x in d], [0, -1, -2, 6, 8, 10])

    def test_generators_begin_anew(self):
        signature = (gradus.TensorSpec([], gradus.float32), gradus.TensorSpec([2], gradus.int32))
        d = data.from_generator(lambda: ((i, np.array([i, i])) for i in range(5)), signature).batch(2).prefetch(1)
        for _ in range(2):
            self.assertEqual([a.tolist() for a, b in d], [[0, 1], [2, 3], [4]])
        self.assertEqual([int(x) for x in data.from_generator(lambda: range(3), gradus.TensorSpec([], gradus.int32))], [0, 1, 2])

    def test_exceptions_come_out_as_themselves(self):
        class Mine(Exception):
            pass

        def fails():
            yield 1
            raise Mine("text")
        for d in (data.from_generator(fails, gradus.TensorSpec([], gradus.int32)),
                  data.from_generator(fails, gradus.TensorSpec([], gradus.int32)).prefetch(2)):
            with self.assertRaisesRegex(Mine, "text"):
                list(d)

        def refuses(x):
            raise Mine("in a map")
        with self.assertRaisesRegex(Mine, "in a map"):
            list(data.range(3).map(refuses))
        with self.assertRaises(gradus.errors.OpError):
            list(data.from_generator(lambda: [(1, 2)], gradus.TensorSpec([], gradus.int32)))
        with self.assertRaises(TypeError):
            data.from_generator(fails, [gradus.float32])

    def test_passes_that_end_early(self):
        def endless():
            while True:
                yield 1.0
        d = data.from_generator(endless, gradus.TensorSpec([])).prefetch(4)
        for _ in range(5):
            next(iter(d))
        reading = iter(d)
        next(reading)
        thread = threading.Thread(target=reading.close)
        thread.start()
        thread.join(30)
        self.assertFalse(thread.is_alive())
        self.assertEqual(list(reading), [])

    def test_the_interpreter_ends_with_a_pass_at_work(self):
        program = """
import time, gradus
def endless():
    while True:
        time.sleep(0.001)
        yield 1.0
kept = iter(gradus.data.from_generator(endless, gradus.TensorSpec([])).map(lambda x: x * 2 if x > 0 else x).prefetch(4))
next(kept)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
