"""Training steps by two processes of one thread each, Gradus and the peers in turn: milliseconds of the slowest rank, the
ratio to the best peer, and the efficiency: what the same ranks take without any exchange, by what they take with it.

    weak: each rank has the workload's batch. strong: they share it. alone: weak, and nothing is exchanged."""
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WORKLOADS = ("dist_mlp_tiny", "dist_mlp_big", "dist_cnn", "dist_gpt")
GOALS = {"dist_mlp_tiny": (.25, .75), "dist_mlp_big": (.70, .90), "dist_cnn": (.60, .95), "dist_gpt": (.72, .98)}
SCALINGS = ("weak", "alone", "strong")
MODES = {"torch": [("torch", [], {}), ("torch, buckets of 4 MB", [], {"DIST_BUCKET_MB": "4"})],
         "jax": [("jax", [], {})], "tf": [("tf", [], {})]}
RANKS = 2


@dataclasses.dataclass
class Measured:
    milliseconds: float
    exec_to_first_s: float


def run(command, environment, seconds, folder):
    """What it prints, or nothing: then it says why."""
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300,
                            env=os.environ | {"BAR_MIN_S": str(seconds), "T0": repr(time.time())} | environment)
    if result.returncode == 0:
        return result.stdout
    print(f"  {command[0]}: exit {result.returncode}: {(result.stderr + result.stdout).strip()[-300:]}", file=sys.stderr)
    return None


def by_gradus(program, workload, scaling, seconds, folder):
    launcher = program.parent / "gradus"
    out = run([str(launcher), "launch", "-n", str(RANKS), "--", str(program), workload, "--threads", "1", "--ranks", scaling],
              {}, seconds, folder)
    lines = [json.loads(line.partition("] ")[2]) for line in (out or "").splitlines() if "] {" in line]
    if len(lines) != RANKS:
        return None
    return Measured(max(line["median_us"] for line in lines) / 1e3,
                    max(line["extra"]["exec_to_first_s"] for line in lines))


def by_peer(python, peer, bench, workload, scaling, seconds, options, environment, folder):
    shared = ["--scaling", "weak" if scaling == "alone" else scaling, *(["--nosync"] if scaling == "alone" else [])]
    out = run([str(python), str(bench / f"dist_{peer}.py"), workload, "--ranks", str(RANKS), *shared, *options],
              environment, seconds, folder)
    lines = [json.loads(line) for line in (out or "").splitlines() if line.startswith("{")]
    if not lines or "median_us" not in lines[-1]:
        return None
    return Measured(lines[-1]["median_us"] / 1e3, lines[-1]["exec_to_first_step_s"])


def median(runs, field):
    values = [getattr(each, field) for each in runs if each]
    return statistics.median(values) if values else None


def measure(program, peers, bench, wanted, rounds, seconds):
    """Rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            workload = name.removeprefix("dist_")
            found = {}
            for number in range(1, rounds + 1):
                for scaling in SCALINGS:
                    print(f"{name}: {scaling}, round {number} of {rounds}", file=sys.stderr)
                    found.setdefault(("gradus", scaling), []).append(by_gradus(program, workload, scaling, seconds, folder))
                    for peer, python in peers.items():
                        for label, options, environment in MODES[peer]:
                            found.setdefault((label, scaling), []).append(
                                by_peer(python, peer, bench, workload, scaling, seconds, options, environment, folder))
            rows += rows_of(name, found)
    return rows


def rows_of(name, found):
    time_of = {key: median(runs, "milliseconds") for key, runs in found.items()}
    start_of = {key: median(runs, "exec_to_first_s") for key, runs in found.items()}
    labels = list(dict.fromkeys(label for label, _ in found))
    best = {scaling: min((time_of[label, scaling] for label in labels
                          if label != "gradus" and time_of[label, scaling]), default=None) for scaling in SCALINGS}
    for label in labels:
        weak, alone, strong = (time_of[label, scaling] for scaling in SCALINGS)
        ratio = lambda mine, theirs: f"{mine / theirs:.2f}" if mine and theirs else ""
        number = lambda value: f"{value:.3g}" if value else "failed"
        goal, efficiency = GOALS[name] if label == "gradus" else ("", "")
        yield [name, label, number(weak), ratio(weak, best["weak"]) if label == "gradus" else "", str(goal),
               ratio(alone, weak), str(efficiency), number(strong),
               ratio(strong, best["strong"]) if label == "gradus" else "", number(start_of[label, "weak"])]


HEADER = ["workload", "program", "weak, ms", "of the best peer", "goal", "efficiency", "goal", "strong, ms",
          "of the best peer", "exec to first loss, s"]
