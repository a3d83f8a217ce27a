"""Profiles that begin and end where Python says."""
import glob
import json
import os
import tempfile
import threading
import unittest

import gradus
import gradus.tensorflow as tf


def work():
    f = gradus.function(lambda x: (x @ x).sum())
    for _ in range(3):
        with gradus.ProfileScope("step"):
            f(gradus.ops.ones([32, 32])).numpy()


def steps_of(report):
    return [row["calls"] for row in json.loads(report.to_json())["rows"] if row["name"] == "step"]


class Profiles(unittest.TestCase):
    def test_of_a_block_and_of_a_function(self):
        with gradus.profile() as taken:
            work()
        for report in (taken.report, gradus.profile(work)):
            self.assertEqual(steps_of(report), [3])
            self.assertIn("step", str(report))
            parts = report.compute + report.input_wait + report.compile + report.communication + report.host
            self.assertAlmostEqual(parts / report.seconds, 1, 1)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace.json")
            taken.report.save_trace(file)
            with open(file) as opened:
                json.load(opened)

    def test_mistakes(self):
        with gradus.profile():
            with self.assertRaisesRegex(ValueError, "already"):
                gradus.profile(work)
        with self.assertRaisesRegex(ValueError, "not begun"):
            gradus.profile().stop()
        with self.assertRaises(KeyError):
            with gradus.profile() as taken:
                raise KeyError
        self.assertIsNone(taken.report)
        with self.assertRaisesRegex(ValueError, "traced"):
            gradus.function(lambda x: gradus.profile().start() and x)(gradus.constant(1.0))
        self.assertEqual(steps_of(gradus.profile(work)), [3])

    def test_a_profile_that_ends_elsewhere_runs_on(self):
        taken, raised = gradus.profile().start(), []

        def stop():
            try:
                taken.stop()
            except ValueError as error:
                raised.append(str(error))
        thread = threading.Thread(target=stop)
        thread.start()
        thread.join()
        self.assertRegex(raised[0], "another thread")
        work()
        self.assertEqual(steps_of(taken.stop()), [3])

    def test_a_profile_that_is_dropped_elsewhere(self):
        began = threading.Event(), threading.Event()
        taken = []

        def begin():
            taken.append(gradus.profile().start())
            began[0].set()
            began[1].wait(60)
            work()
        thread = threading.Thread(target=begin)
        thread.start()
        began[0].wait(60)
        taken.clear()
        began[1].set()
        thread.join()

    def test_names_of_tensorflow(self):
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            with self.assertRaises(tf.errors.AlreadyExistsError):
                tf.profiler.experimental.start(folder)
            with tf.profiler.experimental.Trace("train", step_num=1, _r=1):
                work()
            tf.profiler.experimental.stop()
            with tf.profiler.experimental.Profile(folder):
                work()
            self.assertGreaterEqual(len(glob.glob(folder + "/plugins/profile/*/*.xplane.pb")), 1)
        with self.assertRaisesRegex(tf.errors.UnavailableError, "no profile runs"):
            tf.profiler.experimental.stop()


if __name__ == "__main__":
    unittest.main()
