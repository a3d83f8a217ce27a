"""gradus_bench itself, the first argument: what it lists, what it refuses, and that a cold start, which executes the program
again, keeps its arguments."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import ops_public
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


class Sweep(unittest.TestCase):
    """The rows of bench/ops/, as bench/ops.py asks for them."""

    def ask(self, *requests):
        text = "".join(json.dumps(request) + "\n" for request in requests)
        result = subprocess.run([PROGRAM, "ops", "--threads", "1"], input=text, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_every_op_has_a_row_or_a_reason(self):
        rows = ops_public.rows_of(PROGRAM)
        self.assertEqual(list(ops_public.findings(row["name"] for row in rows)), [])
        self.assertEqual(len({row["name"] for row in rows}), len(rows))
        for row in rows:
            self.assertTrue(row["torch"] or row["jax"], row["name"])

    def test_every_way_of_a_row_gives_the_same_values(self):
        rows = ops_public.rows_of(PROGRAM)
        chosen = {name: place for place, row in enumerate(rows)
                  if (name := row["name"]) in ("add", "moments", "cholesky", "Dense", "gather rows", "lstm")}
        self.assertEqual(len(chosen), 6)
        for name, place in chosen.items():
            for what in ("value", "gradient"):
                answers = self.ask(*({"row": place, "n": 8, "what": what, "mode": mode, "seconds": 0}
                                     for mode in ("eager", "function")))[:2]
                self.assertEqual(answers[0]["values"], answers[1]["values"], (name, what, answers))
                self.assertGreater(answers[1]["median_us"], 0)
                self.assertGreater(answers[1]["bytes"], 0)

    def test_a_request_that_fails_is_answered_and_the_next_one_served(self):
        answers = self.ask({"row": 100000, "n": 1, "what": "value", "mode": "eager", "seconds": 0}, {"list": True})
        self.assertIn("error", answers[0])
        self.assertGreater(answers[1]["rates"]["flops"], 1e8)


if __name__ == "__main__":
    unittest.main()
