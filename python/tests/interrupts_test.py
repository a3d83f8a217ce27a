"""Ctrl-C while a generator of Python makes a long batch on another thread."""
import subprocess
import sys
import unittest

PROGRAM = """
import _thread, signal, threading, time
import numpy as np
import gradus.tensorflow as tf

made, inside, go_on = [], threading.Event(), threading.Event()

def generate():
    for i in range(100):
        made.append(i)
        if i == 2:
            inside.set()
            go_on.wait(60)        # an element that takes long, in the midst of a batch
        yield np.float32(i)

data = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.float32)).batch(8).prefetch(1)
threading.Thread(target=lambda: (inside.wait(60), time.sleep(0.2), signal.raise_signal(signal.SIGINT)), daemon=True).start()
try:
    for batch in data:
        print("no batch was to come")
except KeyboardInterrupt:
    print("interrupted while the element runs:", not go_on.is_set())
go_on.set()
for _ in range(200):
    time.sleep(0.01)
print("elements begun:", len(made))
print("another pass:", next(iter(data.take(1))).shape)
"""


class Interrupts(unittest.TestCase):
    def test_the_wait_ends_and_the_pass_stops_behind_the_element(self):
        ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.stdout.splitlines(), ["interrupted while the element runs: True", "elements begun: 3",
                                                   "another pass: (8,)"], ran.stderr)
        self.assertEqual(ran.returncode, 0)


if __name__ == "__main__":
    unittest.main()
