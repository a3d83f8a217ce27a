"""Threads, processes, signals, collection, and the end of the interpreter."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import gradus


def in_threads(count, work):
    """work(k) on as many threads; False if one does not end."""
    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return not any(thread.is_alive() for thread in threads)


class Threads(unittest.TestCase):
    def test_six_in_one_function(self):
        @gradus.function
        def f(x):
            time.sleep(0.01)
            if x.sum() > 3:
                return (x * x).sum()
            return x.sum()
        found = {}

        def work(k):
            for _ in range(3):
                found[k] = float(f(gradus.constant(np.ones(k + 1, np.float32))))
        self.assertTrue(in_threads(6, work))
        self.assertEqual(found, {k: k + 1.0 for k in range(6)})

    def test_the_gil_is_free_while_the_engine_computes(self):
        x = gradus.constant(np.ones((700, 700), np.float32))
        y = x
        for _ in range(6):
            y = y @ x * 1e-3
        rounds, stop = [0], threading.Event()

        def spin():
            while not stop.is_set():
                rounds[0] += 1
                time.sleep(0)
        thread = threading.Thread(target=spin)
        thread.start()
        before = rounds[0]
        y.numpy()
        after = rounds[0]
        stop.set()
        thread.join()
        self.assertGreater(after, before)

    def test_eager_work_on_many_threads(self):
        v = gradus.Variable(np.zeros(4, np.float32))
        sums = {}

        def work(k):
            total = gradus.constant(np.zeros(4, np.float32))
            for i in range(50):
                total = total + v * float(k) + float(i)
            with gradus.GradientTape() as tape:
                y = (v * float(k)).sum()
            sums[k] = (total.numpy()[0], tape.gradient(y, v).numpy()[0])
        self.assertTrue(in_threads(6, work))
        self.assertEqual(sums, {k: (1225.0, float(k)) for k in range(6)})

    def test_collection_on_another_thread(self):
        given = np.ones(1000, np.float32)
        tape = gradus.GradientTape()
        tape.__enter__()
        v = gradus.Variable(1.0)
        held = [gradus.from_dlpack(given), gradus.function(lambda x: x + v), v * 2, tape, v]
        held[1](gradus.constant(1.0))
        held.append(held)
        del tape, v

        def work(_):
            held.clear()
            gc.collect()
        self.assertTrue(in_threads(1, work))
        self.assertEqual((gradus.constant(1.0) * gradus.Variable(3.0)).item(), 3)

    def test_a_thread_of_the_engine_is_one_thread_of_python(self):
        seen, local = [], threading.local()

        def elements():
            for k in range(20):
                local.count = getattr(local, "count", 0) + 1
                seen.append(local.count)
                yield np.float32(k)
        data = gradus.Dataset.from_generator(elements, output_signature=gradus.TensorSpec((), gradus.float32)).prefetch(2)
        self.assertEqual([x.item() for x in data], list(range(20)))
        self.assertEqual(seen, list(range(1, 21)))

    def test_borrowed_memory_that_dies_within_the_engine(self):
        def work(k):
            for _ in range(30):
                x = gradus.from_dlpack(np.full(256, k, np.float32))
                self.assertEqual((x * 2).numpy()[0], 2 * k)
        self.assertTrue(in_threads(4, work))


class Processes(unittest.TestCase):
    def run_program(self, program, **options):
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options)

    def test_fork(self):
        f = gradus.function(lambda x: (x @ x).sum())
        x = gradus.constant(np.ones((64, 64), np.float32))
        want = f(x).item()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if f(x).item() == want and (x + 1).numpy()[0, 0] == 2 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_multiprocessing(self):
        program = """
import multiprocessing, numpy as np, gradus
def work(x): return (x * 2, gradus.Variable(x))
if __name__ == '__main__':
    for way in ('fork', 'spawn'):
        with multiprocessing.get_context(way).Pool(2) as pool:
            found = pool.map(work, [gradus.constant([1.0, k]) for k in range(4)])
        assert [y.tolist() for y, v in found] == [[2.0, 2.0 * k] for k in range(4)]
        assert found[3][1].value().tolist() == [1.0, 3.0]
"""
        import tempfile
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_ctrl_c_ends_a_loop_and_leaves_a_variable_that_works(self):
        program = """
import os, signal, threading, time, numpy as np, gradus
v = gradus.Variable(np.zeros((64, 64), np.float32))
@gradus.function
def step(x):
    v.assign_add(x @ x * 1e-6)
    return v.sum()
x = gradus.constant(np.ones((64, 64), np.float32))
step(x).numpy()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True: step(x).numpy()
except KeyboardInterrupt: pass
before = float(v.sum())
step(x).numpy()
assert float(v.sum()) > before
"""
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_interpreter_ends_with_everything_alive(self):
        program = """
import threading, numpy as np, gradus
v = gradus.Variable(1.0)
f = gradus.function(lambda x: x * v)
kept = [f, f(gradus.constant(2.0)), gradus.from_dlpack(np.ones(3, np.float32)), gradus.GradientTape()]
kept[3].__enter__()
def spin():
    while True: (gradus.constant(1.0) + f(gradus.constant(3.0))).numpy()
for _ in range(2): threading.Thread(target=spin, daemon=True).start()
import time; time.sleep(0.2)
"""
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_threads_that_have_run_python_end(self):
        program = """
import warnings, numpy as np, gradus, gradus.tensorflow as tf
warnings.simplefilter('ignore')
double = lambda x: tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64)
for n in (4, 1, 3):
    data = tf.data.Dataset.range(40).map(double, num_parallel_calls=4)
    assert [int(x) for x in data] == [2 * k for k in range(40)]
    gradus.set_num_threads(n)
    passes = [iter(tf.data.Dataset.range(1000).map(double, num_parallel_calls=4).prefetch(4)) for _ in range(3)]
    for each in passes: next(each)
    del passes, each
kept = iter(tf.data.Dataset.range(1000).map(double, num_parallel_calls=4).prefetch(4))
next(kept)
"""
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_notices_are_warnings(self):
        program = """
import warnings, gradus
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter('always')
    gradus._native._notice('a notice')
    for _ in range(3): len([])
assert [str(w.message) for w in said] == ['a notice'], said
"""
        done = self.run_program(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
