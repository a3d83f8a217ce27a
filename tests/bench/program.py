"""gradus_bench itself, the first argument: what it lists, what it refuses, and that a cold start, which executes the program
again, keeps its arguments."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from workloads import WORKLOADS

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "T0"}  # when a cold start began
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, env=environment)


class Program(unittest.TestCase):
    def test_lists_every_workload_of_the_runner(self):
        self.assertLessEqual(set(WORKLOADS), set(run("--list").stdout.split()))

    def test_refuses_what_it_does_not_know(self):
        for arguments, code, text in ((["cold"], 2, "no workload cold"), ([], 2, "say which workload"),
                                      (["cold_mlp", "--disable", "turbo"], 1, "turbo"),
                                      (["mlp_tiny", "--inputs", "/no/such.npz"], None, "/no/such.npz")):
            result = run(*arguments)
            self.assertIn(text, result.stderr + result.stdout)
            self.assertNotEqual(result.returncode, 0)
            if code is not None:
                self.assertEqual(result.returncode, code)

    def test_a_cold_start_prints_when_the_first_loss_was_there(self):
        result = run("cold_mlp", "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        line = json.loads(result.stdout)
        self.assertEqual(line["workload"], "cold_mlp")
        self.assertGreater(line["extra"]["cold_s"], 0)
        self.assertGreater(line["extra"]["loss"], 0)

    def test_a_cold_start_keeps_its_arguments(self):
        result = run("cold_mlp", "--profile")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cold_mlp has no one function whose kernels it measures", result.stderr)


if __name__ == "__main__":
    unittest.main()
