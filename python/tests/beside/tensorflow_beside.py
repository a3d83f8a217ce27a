"""The programs of this folder by TensorFlow and by gradus.tensorflow: weights and losses after 20 steps agree within 1e-5,
and what is computed with them.

    tensorflow_beside.py [PYTHON]      PYTHON has TensorFlow; else it is installed as for the benchmarks
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import programs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NEAR = {"weight": 1e-5, "losses": 5e-5, "scores": 5e-5}  # of numbers up to 1; larger ones by their size


def python_of_tensorflow():
    if len(sys.argv) > 1:
        return sys.argv.pop(1)
    subprocess.run([ROOT / "tools/install_peer.sh", "tf"], check=True)
    return ROOT / ".venv-tf/bin/python"


def by_tensorflow(python):
    with tempfile.TemporaryDirectory() as folder:
        found = pathlib.Path(folder) / "found.npz"
        environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([python, HERE / "programs.py", "tensorflow", found], check=True, env=environment)
        with np.load(found) as read:
            return dict(read)


class BesideTensorFlow(unittest.TestCase):
    def test_each_program(self):
        ours, theirs = programs.run("gradus"), by_tensorflow(PYTHON)
        self.assertEqual(list(ours), list(theirs))
        for name, want in theirs.items():
            with self.subTest(name):
                self.assertEqual(ours[name].shape, want.shape)
                difference = np.max(np.abs(ours[name] - want) / np.maximum(np.abs(want), 1), initial=0)
                self.assertLess(difference, NEAR[name.split(": ")[1].split()[0]])


if __name__ == "__main__":
    PYTHON = python_of_tensorflow()
    unittest.main()
