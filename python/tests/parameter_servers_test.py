"""Parameter servers from Python: a cluster of two workers and a server on this machine, by the command `gradus launch`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import gradus
import gradus.tensorflow as tf

# The steps are the same in each process; `run` is given each batch.
PROGRAM = """
import atexit, sys
import gradus.tensorflow as tf
from gradus import nn

def train(schedule, join):
    tf.random.set_seed(3)
    x = tf.random.normal([64, 4])
    y = tf.reduce_sum(x * x, axis=1, keepdims=True)
    model = nn.Sequential([nn.Dense(8, "relu"), nn.Dense(1)])
    model.build([None, 4])
    optimizer = nn.Adam(0.01)
    loss_function = nn.MeanSquaredError()

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = loss_function(y, model(x, training=True))
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables))
        return loss

    compiled = tf.function(update)

    def of_iterator(batches):
        return update(*next(batches))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    losses = []
    for epoch in range(3):
        if epoch < 2:
            for batch in data:
                schedule(compiled, batch)
        else:
            batches = iter(data)
            for _ in range(4):
                schedule(of_iterator, (batches,))
        losses.append(join())
    return [v.numpy().tolist() for v in model.variables], losses

if __name__ == "__main__":
    atexit.register(lambda: print("ended", flush=True))
    strategy = tf.distribute.ParameterServerStrategy(max_staleness=int(sys.argv[1]))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    weights, losses = train(coordinator.schedule, lambda: float(coordinator.join()))
    if len(sys.argv) > 2:
        def fails(x):
            raise KeyError("within the step")
        try:
            coordinator.schedule(fails, (tf.constant(1.0),))
            coordinator.join()
        except KeyError as error:
            print("raised", error, flush=True)
    print("trained", weights, losses, flush=True)
"""


def command():
    """The command of the build tree or of the installed package."""
    beside = os.path.join(os.path.dirname(gradus.__file__), "..", "..", "bin", "gradus")
    return os.path.abspath(beside) if os.path.exists(beside) else os.environ.get("GRADUS_COMMAND") or shutil.which("gradus")


@unittest.skipIf(command() is None, "the command `gradus` is not beside the package")
class Cluster(unittest.TestCase):
    def launch(self, program, *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            done = subprocess.run([command(), "launch", "-n", "2", "--servers", "1", "--", sys.executable, file.name, *arguments],
                                  capture_output=True, text=True, timeout=200)
        if "libgrpc++" in done.stderr + done.stdout:
            self.skipTest("this build has no gRPC")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_in_step_it_is_one_process(self):
        scope = {"__name__": "program"}
        exec(PROGRAM, scope)
        seen = []

        def schedule(step, batch):
            seen.append(float(step(*batch)))

        def join():
            mean = sum(seen) / len(seen)
            seen.clear()
            return mean
        weights, losses = scope["train"](schedule, join)
        printed = self.launch(PROGRAM, "0")
        found = re.findall(r"trained (.*\]) (\[[^\[]*\])$", printed, re.M)
        self.assertEqual(len(found), 2, printed)
        for other_weights, other_losses in found:
            self.assertEqual(other_weights, str(weights))
            for a, b in zip(eval(other_losses), losses, strict=True):
                self.assertAlmostEqual(a, b, 5)
        self.assertEqual(len(re.findall(r"^\[server 0\].*ended$", printed, re.M)), 1, printed)

    def test_late_values_are_the_same_on_all_workers(self):
        found = re.findall(r"trained (.*)$", self.launch(PROGRAM, "1", "and fail"), re.M)
        self.assertEqual(len(found), 2)
        self.assertEqual(found[0], found[1])


class Alone(unittest.TestCase):
    def test_mistakes(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "no parameter servers"):
            tf.distribute.ParameterServerStrategy()
        with self.assertRaisesRegex(ValueError, "variable_partitioner"):
            tf.distribute.experimental.ParameterServerStrategy(variable_partitioner=object())
        with self.assertRaisesRegex(ValueError, "ParameterServerStrategy"):
            tf.distribute.coordinator.ClusterCoordinator(tf.distribute.MirroredStrategy(["cpu:0"]))
        with self.assertRaisesRegex(tf.errors.UnimplementedError, "join"):
            tf.distribute.coordinator.RemoteValue().fetch()
        with self.assertRaisesRegex(AttributeError, "serves"):
            tf.distribute.Server


if __name__ == "__main__":
    unittest.main()
