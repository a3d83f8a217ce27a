"""bench/run.py: which figure a line gives, medians over rounds, the best peer, and a table without a peer."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import run  # noqa: E402


def step(median, sustained):
    return {"median_us": median, "extra": {"sustained_us": sustained}}


class Run(unittest.TestCase):
    def test_step_is_the_smaller_of_blocking_and_sustained(self):
        self.assertEqual(run.step_time(step(80, 70)), 70)
        self.assertEqual(run.step_time(step(60, 70)), 60)
        self.assertEqual(run.step_time({"median_us": 60, "extra": {}}), 60)

    def test_retrace_counts_first_calls_at_new_sizes(self):
        calls = {"64": [9, 9], "48": [0.5, 9], "80": [0.25, 9], "96": [0.125, 9], "112": [0.125]}
        self.assertEqual(run.new_sizes({"extra": {"calls_s": calls}}), 1000)

    def test_ratio_is_of_medians_to_the_best_peer(self):
        lines = {"gradus": [step(50, 60), step(40, 60), step(300, 400)], "jax jit": [step(100, 120)] * 3,
                 "tf xla": [step(200, 250)] * 3}
        row, = run.summarize("mlp_tiny", lines)
        self.assertEqual((row["gradus"], row["best_peer"], row["ratio"]), (50, "jax jit", 0.5))
        self.assertEqual(run.table([row]).splitlines()[1].split(), "mlp_tiny step us 50 100 jax jit 0.5".split())

    def test_a_missing_peer_gives_no_ratio(self):
        row, = run.summarize("mlp_tiny", {"gradus": [step(50, 60)]})
        self.assertEqual((row["best_peer"], row["ratio"]), (None, None))

    def test_the_program_runs_and_fails_where_gradus_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "gradus_bench")
            for script, code in (('echo starting; echo \'{"median_us": 12.5, "extra": {}}\'', 0), ("exit 3", 1)):
                fake.write_text("#!/bin/sh\n" + script + "\n")
                fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
                command = [sys.executable, run.__file__, "--gradus-bench", str(fake), "--peers", "--rounds", "1",
                           "--workloads", "mlp_tiny"]
                result = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn("12.5" if code == 0 else "-", result.stdout)


if __name__ == "__main__":
    unittest.main()
