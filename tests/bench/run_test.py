"""bench/run.py and what it reads: which figure a line gives, pairs and their spread, the best peer, limits, checks of results,
tables, and a run of a program that stands for gradus_bench."""
import json
import math
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import loaded  # noqa: E402
import ops  # noqa: E402
import ops_public  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import workloads  # noqa: E402

MACHINE = {"gflops": 200, "bf16_gflops": 400, "read_gb_s": 20, "copy_gb_s": 10, "copy_past_caches_gb_s": 20,
           "in_place_gb_s": 10}


def step(median, sustained=None, **extra):
    return {"median_us": median, "first_call_s": 1.0, "extra": {"sustained_us": sustained or median, **extra}}


def in_turn(ours, **peers):
    """Runs as they come: Gradus before every run of a peer. Names with _ for a space."""
    runs, own = [], iter(ours)
    for of_round in zip(*peers.values()):
        for name, line in zip(peers, of_round):
            runs += [("gradus", next(own)), (name.replace("_", " "), line)]
    return runs


class Figures(unittest.TestCase):
    def test_step_is_the_smaller_of_blocking_and_sustained(self):
        self.assertEqual(workloads.step_time(step(80, 70)), 70)
        self.assertEqual(workloads.step_time(step(60, 70)), 60)
        self.assertEqual(workloads.step_time({"median_us": 60, "extra": {}}), 60)

    def test_retrace_counts_first_calls_at_new_sizes(self):
        calls = {"64": [9, 9], "48": [0.5, 9], "80": [0.25, 9], "96": [0.125, 9], "112": [0.125]}
        self.assertEqual(workloads.new_sizes({"extra": {"calls_s": calls}}), 1000)

    def test_a_line_without_the_figure_gives_nothing(self):
        figure = workloads.WORKLOADS["cold_mlp"].figures[0]
        self.assertIsNone(figure.of({"extra": {}}))
        self.assertEqual(figure.of({"extra": {"cold_s": 0.25}}), 250)
        self.assertEqual(report.median_of(figure, [{"extra": {}}, {"extra": {"cold_s": 0.25}}]), 250)


class Ratios(unittest.TestCase):
    def test_ratio_is_of_medians_and_the_spread_of_pairs(self):
        runs = in_turn([step(t) for t in (50, 1000, 60, 1000, 40, 1000)], jax_jit=[step(t) for t in (100, 100, 160)],
                       tf_xla=[step(300)] * 3)
        row, = report.summarize("mlp_tiny", [r for r in runs if r[1]["median_us"] != 1000])
        self.assertEqual((row["gradus"], row["best_peer"], row["ratio"]), (50, "jax jit", 0.5))
        self.assertEqual((row["spread"], row["pairs"]), ([0.25, 0.6], 3))
        self.assertEqual(row["peers"], {"jax jit": 100, "tf xla": 300})

    def test_a_pair_is_a_run_and_the_run_of_gradus_right_before_it(self):
        a, b, c, d = map(step, (1, 2, 3, 4))
        runs = [("gradus", a), ("tf", b), ("gradus", c), ("jax", d), ("tf", d)]
        self.assertEqual(list(report.pairs(runs, "tf")), [(a, b), (c, d)])
        self.assertEqual(list(report.pairs(runs, "jax")), [(c, d)])
        self.assertEqual(list(report.pairs([("tf", b)], "tf")), [])

    def test_a_missing_peer_gives_no_ratio(self):
        row, = report.summarize("mlp_tiny", [("gradus", step(50, 60))])
        self.assertEqual((row["best_peer"], row["ratio"], row["spread"]), (None, None, None))

    def test_the_first_call_is_compared_with_those_that_compile(self):
        lines = {"gradus": 0.5, "torch eager": 0.25, "jax jit": 2.0, "tf function": 4.0}
        runs = [(name, step(10) | {"first_call_s": seconds}) for name, seconds in lines.items()]
        row = report.summarize("gpt", runs)[1]
        self.assertEqual((row["figure"], row["best_peer"], row["ratio"]), ("first call", "jax jit", 0.25))

    def test_the_best_of_memory_may_be_another_peer(self):
        runs = [("gradus", step(10, rss_growth_mb=30)), ("jax jit", step(20, rss_growth_mb=300)),
                ("tf xla", step(40, rss_growth_mb=120)), ("torch eager", step(50))]
        growth = report.summarize("mlp_big", runs)[0]["growth"]
        self.assertEqual((growth["best_peer"], growth["ratio"], growth["goal"]), ("tf xla", 0.25, 0.5))

    def test_who_is_far_behind_runs_no_more(self):
        names = ["jax jit", "tf xla", "torch eager", "torch compile"]
        peers = [run.Program(name, []) for name in names]
        kept = lambda workload, runs: [program.name for program in run.still_running(workload, peers, runs)]
        first = [("gradus", step(1)), ("jax jit", step(100)), ("tf xla", step(149)), ("torch eager", step(151))]
        self.assertEqual(kept("mlp_tiny", first), ["jax jit", "tf xla"])
        self.assertEqual(kept("mlp_tiny", first + [("jax jit", step(100)), ("tf xla", step(105))]), ["jax jit"])
        self.assertEqual(kept("mlp_tiny", [("gradus", step(1))]), [])
        # A first call has a goal in gpt and decides alone in gpt_l2, which has no goal; eager peers do not count in it.
        calls = {"jax jit": (500, 1), "tf xla": (300, 2), "torch eager": (100, .1), "torch compile": (120, 9)}
        runs = [(name, step(time) | {"first_call_s": call}) for name, (time, call) in calls.items()]
        self.assertEqual(kept("gpt", runs), ["jax jit", "torch eager", "torch compile"])
        self.assertEqual(kept("gpt_l2", runs), ["jax jit"])


class Limits(unittest.TestCase):
    def test_arithmetic_and_traffic_add_up(self):
        limit = workloads.Limit(flops=200e6, narrow_flops=400e6, bytes=10e6, traffic="copy")
        self.assertAlmostEqual(limit.microseconds(MACHINE), 1000 + 1000 + 1000)
        self.assertAlmostEqual(limit.microseconds(MACHINE | {"bf16_gflops": None}), 1000 + 2000 + 1000)

    def test_work_of_the_workloads(self):
        for name, flops, narrow, traffic in (("mlp_tiny", 26.2e6, 0, 0), ("mlp_big", 8.1e9, 0, 140e6),
                                             ("mlp_big_bf16", 0, 8.1e9, 140e6), ("cnn", 2.83e9, 0, 0),
                                             ("gpt", 42e9, 0, 0), ("jacobian", 14.8e9, 0, 21e6),
                                             ("adamw_update", 0, 0, 671e6), ("generate", 60.8e6, 0, 121.6e6),
                                             ("generate_b8", 486.5e6, 0, 151e6)):
            limit = workloads.WORKLOADS[name].limit
            for got, expected in ((limit.flops, flops), (limit.narrow_flops, narrow), (limit.bytes, traffic)):
                self.assertLessEqual(abs(got - expected), 0.01 * expected, name)

    def test_a_row_says_how_far_its_limit_is_in_its_own_unit(self):
        row, = report.summarize("adamw_update", [("gradus", step(100_000))], MACHINE)
        self.assertAlmostEqual(row["limit"], 67.158, places=3)
        self.assertAlmostEqual(row["of_limit"], 100 / 67.158016)
        self.assertIsNone(report.summarize("adamw_update", [("gradus", step(1))])[0]["limit"])
        self.assertIsNone(report.summarize("eager_chain", [], MACHINE)[0]["limit"])

    def test_every_limit_names_what_is_measured(self):
        for name, workload in workloads.WORKLOADS.items():
            if workload.limit:
                self.assertGreater(workload.limit.microseconds(MACHINE), 0, name)

    def test_the_machine_is_the_most_that_was_measured(self):
        slow = MACHINE | {"gflops": 150, "in_place_gb_s": 12, "bf16_gflops": None}
        self.assertEqual(report.machine_of([slow, MACHINE]), MACHINE | {"in_place_gb_s": 12})
        self.assertIsNone(report.machine_of([]))


class Checks(unittest.TestCase):
    def rows(self, ours, theirs, workload="mlp_tiny", were_given=True):
        runs = in_turn([step(1, loss_after_20=ours)], jax_jit=[step(2, loss_after_20=theirs)])
        return report.summarize(workload, runs, were_given=were_given)

    def test_losses_agree_to_one_in_ten_thousand(self):
        for ours, theirs, agrees in ((1.0, 1.00009, True), (1.0, 1.00011, False), (30.0, 30.002, True),
                                     (math.nan, 1.0, False), (0.00001, 0.0, True)):
            rows = self.rows(ours, theirs)
            self.assertEqual(rows[0]["checks"][0]["agrees"], agrees, (ours, theirs))
            self.assertEqual(list(report.complaints(rows)) == [], agrees, (ours, theirs))

    def test_a_wrong_loss_is_named(self):
        rows = self.rows(1.0, 2.0)
        self.assertIn("differs from jax jit", report.markdown_table(report.HEADER, map(report.cells, rows)))
        self.assertRegex(next(report.complaints(rows)), "mlp_tiny: the loss after 20 steps is 1.0, but 2.0 of jax jit")

    def test_other_numbers_are_not_compared(self):
        self.assertEqual(self.rows(1.0, 2.0, were_given=False)[0]["checks"], [])
        self.assertEqual(self.rows(1.0, 2.0, workload="cnn")[0]["checks"], [])
        self.assertEqual(self.rows(1.0, None)[0]["checks"], [])

    def test_a_figure_that_gradus_lacks_is_a_failure(self):
        self.assertEqual(list(report.complaints(report.summarize("mlp_tiny", [("jax jit", step(1))]))),
                         ["mlp_tiny: Gradus gave no figure for step"])


class Text(unittest.TestCase):
    def test_the_table_in_markdown(self):
        runs = in_turn([step(50_000, loss_after_10=1.5, rss_growth_mb=20)] * 2,
                       jax_jit=[step(t, loss_after_10=1.5, rss_growth_mb=80) for t in (100_000, 125_000)])
        result = {"machine": {"cpu": "A CPU", "cores": 4, "threads": 2, "date": "2026-01-01"}, "limits": MACHINE,
                  "absent": ["tf is not installed"], "rows": report.summarize("mlp_big", runs, MACHINE, True)}
        lines = report.markdown(result).splitlines()
        self.assertIn("A CPU, 4 cores, 2 threads", lines[0])
        row = next(line for line in lines if line.startswith("| mlp_big | 50"))
        self.assertEqual([cell.strip() for cell in row.strip("| ").split("|")],
                         ["mlp_big", "50 ms", "112 ms", "jax jit", "**0.444**", "0.4-0.5 (2)", "0.85", "54.6 ms", "0.92",
                          "20", "80", "0.25", "agrees with 1 to 0e+00"])
        self.assertEqual(lines[-1], "Left out: tf is not installed.")

    def test_numbers(self):
        for value, text in ((None, ""), (0.4567, "0.457"), (123456, "123456"), (12.34, "12.3"), (0.0001, "0.0001")):
            self.assertEqual(report.number(value), text)

    def test_worth_of_a_pass(self):
        figure = workloads.WORKLOADS["mlp_tiny"].figures[0]
        found = report.worth(figure, [step(t) for t in (10, 10, 20)], [step(t) for t in (15, 20, 50)])
        self.assertEqual(found, {"factor": 2, "spread": [1.5, 2.5]})
        table = report.worth_table({"mlp_tiny": {"fuse": found, "fold": None}}).splitlines()
        self.assertEqual(table[2:], ["| fuse | **2.00 (1.50-2.50)** |", "| fold |  |"])


class Loaded(unittest.TestCase):
    def test_the_mean_is_compared_under_load_and_the_median_with_the_quiet_machine(self):
        of = lambda mean, median: {"median_us": median, "extra": {"mean_us": mean}}
        runs = {("mlp_tiny_b16", 0): [("gradus", of(30, 20)), ("one thread", of(44, 40))],
                ("mlp_tiny_b16", 2): [("gradus", of(90, 44)), ("one thread", of(100, 50)), ("gradus", of(110, 46)),
                                      ("gradus", of(130, 48)), ("torch", of(900, 800))]}
        quiet, busy = loaded.rows_of(runs)
        self.assertEqual((quiet["mean"], quiet["median"]), (30 / 44, 0.5))
        self.assertEqual((busy["gradus"], busy["one thread"]), ({"mean": 110, "median": 46}, {"mean": 100, "median": 50}))
        self.assertEqual((busy["mean"], busy["median"]), (1.1, 46 / 40))
        self.assertEqual((busy["torch"], busy["jax"]), ({"mean": 900, "median": 800}, None))
        self.assertEqual(loaded.cells(busy), ["mlp_tiny_b16, us", "2", "110, 46", "100, 50", "**1.1**", "**1.15**",
                                              "900, 800", "-"])
        self.assertEqual(len(loaded.cells(quiet)), len(loaded.HEADER))

    def test_what_is_missing_has_no_ratio(self):
        row, = loaded.rows_of({("predict_b1", 1): [("gradus", step(10, mean_us=12))]})
        self.assertEqual((row["mean"], row["median"]), (None, None))
        self.assertEqual(loaded.cells(row)[3:6], ["-", "-", "-"])

    def test_busy_processes_run_while_others_are_measured_and_end(self):
        with tempfile.TemporaryDirectory() as folder:
            fake, text = pathlib.Path(folder, "gradus_bench"), pathlib.Path(folder, "report.md")
            count = pathlib.Path(folder, "running")
            line = json.dumps(step(12.5, mean_us=20))
            fake.write_text(f"""#!/bin/sh
if [ "$1" = busy ]; then echo $$ >> {count}; exec sleep 60; fi
[ "$BAR_LOADED" = 1 ] && echo '{line}'
""")
            fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
            command = [sys.executable, run.__file__, "--gradus-bench", str(fake), "--peers", "--rounds", "1", "--workloads",
                       "mlp_tiny_b16", "--loaded", "0", "2", "--markdown", str(text)]
            result = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(text.read_text().count("| mlp_tiny_b16, us |"), 2)
            for process in count.read_text().split():
                self.assertFalse(pathlib.Path("/proc", process).exists())


class BesideOthers(unittest.TestCase):
    def test_nobody_waits_for_quiet_on_a_machine_that_others_use(self):
        for busy, waits in ((0.02, True), (0.9, False)):
            with unittest.mock.patch.dict("os.environ", clear=True), \
                    unittest.mock.patch.object(run, "busy_cores", lambda busy=busy: busy):
                self.assertEqual(run.note_load(), busy)
                self.assertEqual("BAR_LOADED" not in run.os.environ, waits)

    def test_busy_cores_are_counted(self):
        self.assertGreaterEqual(run.busy_cores(0.05), 0)
        self.assertIn("0.9 of the machine's cores", report.load_text(0.9))


def answer(us, mean=0.5, flops=None):
    return {"median_us": us, "min_us": us, "values": [[4, mean, 1.0, 2.0]], "bytes": 1000} | (
        {"flops": flops} if flops is not None else {})


class Sweep(unittest.TestCase):
    ROW = {"name": "exp", "draws": False, "shaped_by_values": False}
    RATES = {"flops": 1e9, "cached": 1e9, "memory": 1e8, "threads": 1}

    def lines(self, extent="cached"):
        answers = {("gradus", "eager"): answer(12), ("gradus", "function"): answer(6, flops=2000),
                   ("torch", "eager"): answer(8), ("jax", "eager"): answer(30), ("jax", "function"): answer(5)}
        return list(ops.lines_of(self.ROW, "value", extent, answers, self.RATES))

    def test_a_line_has_the_best_peer_of_its_mode_and_the_limit(self):
        eager, function = self.lines()
        self.assertEqual((eager["best"], eager["ratio"]), ("torch eager", 1.5))
        self.assertEqual((function["best"], function["ratio"]), ("jax function", 1.2))
        self.assertAlmostEqual(function["of_limit"], 3)  # 2000 operations take 2 us
        self.assertAlmostEqual(self.lines("beyond")[1]["of_limit"], 0.6)  # 1000 bytes of memory take 10 us

    def test_who_is_asked(self):
        worker = lambda is_broken=False: unittest.mock.Mock(is_broken=is_broken)
        workers = {"gradus": worker(), "torch": worker(), "jax": worker()}
        row = {"name": "exp", "torch": "torch.exp(a)", "jax": "jnp.exp(a)", "shaped_by_values": False}
        ours, torch, jax = [("gradus", "eager"), ("gradus", "function")], [("torch", "eager")], [("jax", "function")]
        self.assertEqual(ops.programs_of(row, workers), ours + torch + [("jax", "eager")] + jax)
        self.assertEqual(ops.programs_of(row, workers, "gradient"), ours + torch + jax)
        self.assertEqual(ops.programs_of(row | {"jax": "", "shaped_by_values": True}, workers), ours[:1] + torch)
        self.assertEqual(ops.programs_of(row, workers | {"torch": worker(True)}, "gradient"), ours + jax)

    def test_values_that_are_no_numbers_agree_with_their_like(self):
        self.assertEqual(ops.apart([[4, None, None, None]], [[4, math.inf, math.inf, math.inf]]), 0)
        self.assertEqual(ops.apart([[4, 0.5, 1.0, 2.0]], [[4, math.nan, math.nan, math.nan]]), math.inf)
        self.assertEqual(ops.apart([[4, 0.5, 1.0, 2.0]], [[5, 0.5, 1.0, 2.0]]), math.inf)

    def test_slow_and_far_rows_are_found(self):
        self.assertEqual([line["mode"] for line in ops.slow(self.lines())], ["eager"])
        self.assertEqual([line["mode"] for line in ops.farthest(self.lines())], ["function"])

    def test_values_that_disagree_and_errors_are_told(self):
        answers = {("gradus", "function"): answer(6, flops=1), ("torch", "eager"): answer(8, mean=0.7),
                   ("jax", "eager"): {"error": "no such op"}}
        told = list(ops.problems_of(self.ROW, "value", answers))
        self.assertEqual(len(told), 2)
        self.assertIn("torch eager is 2.0e-01 apart", told[0])
        self.assertEqual(list(ops.problems_of(self.ROW | {"draws": True}, "value", answers)), told[1:])

    def test_reasons_name_what_is_missing_and_what_is_stale(self):
        with unittest.mock.patch.object(ops_public, "public_names", lambda: {"exp", "log", "sin"}), \
                unittest.mock.patch.object(ops_public, "reasons", lambda: {"exp": "why", "cos": "why"}):
            told = "\n".join(ops_public.findings(["exp", "log of rows", "tan"]))
        for text in ("sin has no row", "offers no cos", "exp has a row", "the row tan is called like no op"):
            self.assertIn(text, told)

    def test_a_program_that_never_answers_is_asked_once(self):
        worker = ops.Worker(["false"], dict(run.os.environ))
        self.assertIn("ended with status 1", worker.ask({})["error"])
        self.assertTrue(worker.is_broken)
        worker.stop()


class Running(unittest.TestCase):
    def test_a_first_call_finds_nothing_that_earlier_runs_compiled(self):
        says = [sys.executable, "-c", "import json, os; print(json.dumps({'found': os.listdir(os.environ['TORCHINDUCTOR_CACHE_DIR'])}))"]
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict("os.environ", TORCHINDUCTOR_CACHE_DIR=folder):
            pathlib.Path(folder, "compiled").touch()
            for workload, anew in (("gpt", True), ("mlp_big", False)):
                program = next(run.peer_programs(workload, {"torch": sys.executable}, None))
                self.assertEqual(program.compiles_anew, anew)
            found = [run.run_program(run.Program("torch compile", says, compiles_anew=anew), 1) for anew in (True, False)]
        self.assertEqual(found, [{"found": []}, {"found": ["compiled"]}])

    def test_rows_in_python_stand_beside_peers_and_the_same_in_cpp(self):
        peers = {"tf": "tf/python", "jax": "jax/python"}
        ours, beside = run.python_programs("py_mlp_step", peers, pathlib.Path("/build/bin/gradus_bench"), ["--inputs", "x.npz"])
        self.assertEqual(ours.command[1:], [str(run.BENCH / "py_rows.py"), "gradus", "py_mlp_step", ""])
        self.assertEqual((ours.environment["PYTHONPATH"], ours.environment["LD_LIBRARY_PATH"]), ("/build/python", "/build/bundled"))
        self.assertEqual([program.name for program in beside], ["tf function", "tf xla", "jax jit", "gradus in C++"])
        self.assertEqual(beside[2].command, ["jax/python", str(run.BENCH / "peer_jax.py"), "mlp_tiny", "jit"])
        self.assertEqual(beside[3].command[-2:], ["--inputs", "x.npz"])
        runs = [("gradus", step(10)), ("jax jit", step(20)), ("gradus", step(10)), ("gradus in C++", step(9))]
        of_peers, of_cpp = run.report.summarize("py_mlp_step", runs)
        self.assertEqual((of_peers["best_peer"], of_peers["ratio"]), ("jax jit", 0.5))
        self.assertEqual(of_cpp["best_peer"], "gradus in C++")
        self.assertAlmostEqual(of_cpp["ratio"], 10 / 9)
        self.assertEqual([p.name for p in run.still_running("py_mlp_step", beside, runs)], ["jax jit", "gradus in C++"])

    def test_a_program_of_keras_runs_by_each_backend(self):
        peers = {"jax": pathlib.Path("/j/python"), "tf": pathlib.Path("/t/python")}
        ours, beside = run.python_programs("keras_mlp", peers, pathlib.Path("/build/bin/gradus_bench"), [])
        self.assertEqual(ours.command[1:], [str(run.BENCH / "keras_rows.py"), "gradus", "keras_mlp", ""])
        self.assertEqual([program.command[2] for program in beside], ["jax", "tensorflow"])
        _, beside = run.python_programs("keras_import", peers, pathlib.Path("/build/bin/gradus_bench"), [])
        self.assertEqual([program.command[2] for program in beside], ["numpy"])

    def test_hardware_threads_of_one_core_come_last(self):
        siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
        self.assertEqual(run.few_of({0, 1, 2, 3}, siblings.get), [0, 2])
        self.assertEqual(run.few_of({0, 1}, siblings.get), [0, 1])
        self.assertEqual(run.few_of({3}, siblings.get), [3])

    def test_the_program_runs_and_fails_where_gradus_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            fake, saved = pathlib.Path(folder, "gradus_bench"), pathlib.Path(folder, "rows.json")
            text = pathlib.Path(folder, "report.md")
            line = json.dumps(step(12.5) | {"extra": {"sustained_us": 12.5, **MACHINE}})
            for script, code in ((f"echo starting; echo '{line}'", 0), ("exit 3", 1)):
                fake.write_text("#!/bin/sh\n" + script + "\n")
                fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
                command = [sys.executable, run.__file__, "--gradus-bench", str(fake), "--peers", "--rounds", "2",
                           "--workloads", "mlp_tiny", "--json", str(saved), "--markdown", str(text)]
                result = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn("12.5 us" if code == 0 else "no figure for step", result.stdout + result.stderr)
                if code == 0:
                    rows = json.loads(saved.read_text())
                    self.assertEqual(len(rows["runs"]["mlp_tiny"]), 2)
                    self.assertAlmostEqual(rows["rows"][0]["of_limit"], 12.5 / 130.9, places=3)
                    self.assertIn("| mlp_tiny | 12.5 us |", text.read_text())

    def test_a_peer_that_fails_is_named_and_does_not_matter(self):
        with tempfile.TemporaryDirectory() as folder:
            line = json.dumps(step(10))
            ours = run.Program("gradus", ["/bin/sh", "-c", f"echo '{line}'"])
            peers = [run.Program("jax jit", ["/bin/sh", "-c", f"echo '{line}'"]), run.Program("tf xla", ["false"]),
                     run.Program("torch eager", [str(pathlib.Path(folder, "missing"))])]
            runs, failed = run.run_workload("mlp_tiny", ours, peers, 2, 1)
        self.assertEqual(failed, ["tf xla", "torch eager"])
        self.assertEqual([name for name, _ in runs], ["gradus", "jax jit", "gradus", "gradus", "gradus", "jax jit"])


if __name__ == "__main__":
    unittest.main()
