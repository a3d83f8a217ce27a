#!/usr/bin/env python3
"""Runs gradus_bench and the installed peers in turn, in one run, and prints what Gradus takes as a share of the best peer.

Each round runs every program once, one after the other, so that a disturbance hits all alike; a figure is the median
over the rounds. Only ratios taken in one run count. WORKLOADS.md says what each workload is.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import typing

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
THREADS = 2


def step_time(line):
    """A step's microseconds, the smallest of: the loss read at each step, or at the end; the peer's library, or by hand."""
    extra = line["extra"]
    return min(t for t in (line.get("median_us"), extra.get("sustained_us"), extra.get("raw_us"),
                           extra.get("raw_sustained_us"), extra.get("loop10_us")) if t)


def chain_forward(line):
    extra = line["extra"]
    return min(t for t in (extra["fwd_us_per_op"], extra.get("fwd_sustained_us_per_op")) if t)


def new_sizes(line):
    """Milliseconds of the first calls at the four batch sizes that were not seen before."""
    calls = line["extra"]["calls_s"]
    return 1e3 * sum(calls[size][0] for size in ("48", "80", "96", "112"))


@dataclasses.dataclass
class Figure:
    name: str
    unit: str
    read: typing.Callable


STEP_US = Figure("step", "us", step_time)
STEP_MS = Figure("step", "ms", lambda line: step_time(line) / 1e3)
GROWTH_MB = Figure("growth of memory", "MB", lambda line: line["extra"]["rss_growth_mb"])
WORKLOADS = {
    "mlp_tiny": [STEP_US],
    "mlp_tiny_b16": [STEP_US],
    "mlp_tiny_b256": [STEP_US],
    "mlp_big": [STEP_MS],
    "mlp_big_bf16": [STEP_MS],
    "gpt": [STEP_MS],
    "gpt_bf16": [STEP_MS],
    "cnn": [STEP_MS],
    "dwsep": [STEP_MS],
    "lstm": [STEP_MS],
    "accumulate": [STEP_MS],
    "adamw_update": [STEP_MS],
    "jacobian": [STEP_MS, GROWTH_MB],
    "input_grad": [STEP_MS, GROWTH_MB],
    "pegn": [STEP_MS, GROWTH_MB],
    "eager_chain": [Figure("forward", "us/op", chain_forward),
                    Figure("forward+gradient", "us/op", lambda line: line["extra"]["fwd_bwd_us_per_op"])],
    **{name: [Figure("first call", "ms", lambda line: 1e3 * line["first_call_s"]), STEP_MS]
       for name in ("gpt_l1", "gpt_l2", "gpt_l8")},
    "cold_gpt": [Figure("exec to first loss", "ms", lambda line: 1e3 * line["extra"]["cold_s"])],
    "cold_mlp": [Figure("exec to first loss", "ms", lambda line: 1e3 * line["extra"]["cold_s"])],
    "retrace": [Figure("four new sizes", "ms", new_sizes)],
    "pipeline": [Figure("64 images", "us", lambda line: line["median_us"])],
    "fit": [Figure("epoch", "s", lambda line: line["median_us"] / 1e6)],
}
# In which modes a peer runs a workload; what is not named runs in those of "".
MODES = {
    "jax": {"": ["jit"], "eager_chain": ["nojit"]},
    "tf": {"": ["function", "xla"], "eager_chain": ["eager"], "pipeline": ["function"],
           "fit": ["function"]},
    "torch": {"": ["eager", "compile"], "eager_chain": ["eager"], "cold_mlp": ["eager"], "cold_gpt": ["eager"], "pipeline": ["eager"],
              "fit": ["eager"]},
}


@dataclasses.dataclass
class Program:
    name: str
    command: list


def programs(workload, gradus_bench, peers):
    yield Program("gradus", [str(gradus_bench), workload])
    for peer, python in peers.items():
        for mode in MODES[peer].get(workload, MODES[peer][""]):
            yield Program(f"{peer} {mode}", [str(python), str(BENCH / f"peer_{peer}.py"), workload, mode])


def last_json_line(output):
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no JSON line in its output")


def run_program(program, seconds):
    """The JSON line of one run, or nothing where it fails; the reason goes to stderr."""
    environment = os.environ | {"GRADUS_NUM_THREADS": str(THREADS), "BAR_MIN_S": str(seconds), "T0": repr(time.time())}
    result = subprocess.run(program.command, capture_output=True, text=True, env=environment, cwd=BENCH)
    try:
        if result.returncode != 0:
            raise ValueError(f"exit {result.returncode}: {result.stderr.strip()[-400:]}")
        return last_json_line(result.stdout)
    except ValueError as problem:
        print(f"  {program.name}: {problem}", file=sys.stderr)
        return None


def run_workload(workload, gradus_bench, peers, rounds, seconds):
    """The JSON lines of every program: {name: [line of each round]}."""
    lines = {}
    for number in range(1, rounds + 1):
        for program in programs(workload, gradus_bench, peers):
            print(f"{workload}: round {number} of {rounds}, {program.name}", file=sys.stderr)
            line = run_program(program, seconds)
            if line is not None:
                lines.setdefault(program.name, []).append(line)
    return lines


def summarize(workload, lines):
    """One row a figure: medians of every program, the best peer, and Gradus's share of its time."""
    for figure in WORKLOADS[workload]:
        medians = {name: statistics.median(map(figure.read, of_rounds)) for name, of_rounds in lines.items()}
        gradus = medians.pop("gradus", None)
        best = min(medians, key=medians.get, default=None)
        ratio = gradus / medians[best] if gradus is not None and best else None
        yield {"workload": workload, "figure": figure.name, "unit": figure.unit, "gradus": gradus, "peers": medians,
               "best_peer": best, "ratio": ratio}


def number(value, digits=4):
    return "-" if value is None else f"{value:.{digits}g}"


def table(rows):
    text = [["workload", "figure", "unit", "gradus", "best peer", "", "ratio"]]
    for row in rows:
        best = row["best_peer"]
        text.append([row["workload"], row["figure"], row["unit"], number(row["gradus"]),
                     number(row["peers"].get(best)), best or "", number(row["ratio"], 3)])
    widths = [max(map(len, column)) for column in zip(*text)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in text)


def installed_peers(wanted):
    pythons = {peer: ROOT / f".venv-{peer}" / "bin" / "python" for peer in wanted}
    for peer, python in pythons.items():
        if not python.exists():
            print(f"{peer} is not installed (make bench-peers PEERS={peer}): left out", file=sys.stderr)
    return {peer: python for peer, python in pythons.items() if python.exists()}


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"cpu": model, "cores": os.cpu_count(), "threads": THREADS, "date": time.strftime("%Y-%m-%d")}


def use_few_cores():
    """Every program gets the same cores, as many as threads: frameworks take all that they see."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) > THREADS:
        os.sched_setaffinity(0, available[:THREADS])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="NAME",
                        help="of " + " ".join(WORKLOADS))
    parser.add_argument("--peers", nargs="*", choices=MODES, default=list(MODES), metavar="PEER",
                        help="of " + " ".join(MODES) + "; those not installed are left out")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program (3)")
    parser.add_argument("--seconds", type=float, default=2, help="time that a step is repeated in one run (2)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write rows, all lines and the machine there")
    parser.add_argument("--gradus-bench", type=pathlib.Path, default=ROOT / "build/release/bin/gradus_bench",
                        metavar="PROGRAM", help="another build of gradus_bench")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    gradus_bench = arguments.gradus_bench.resolve()
    if not gradus_bench.exists():
        sys.exit(f"run.py: {gradus_bench} does not exist: make bench builds it")
    use_few_cores()
    peers = installed_peers(arguments.peers)
    lines, rows = {}, []
    for workload in arguments.workloads:
        lines[workload] = run_workload(workload, gradus_bench, peers, arguments.rounds, arguments.seconds)
        rows += summarize(workload, lines[workload])
        if arguments.json:  # after each workload: what was measured stays, whatever becomes of the rest
            arguments.json.write_text(json.dumps({"machine": machine(), "rows": rows, "lines": lines}, indent=1) + "\n")
    print(table(rows))
    sys.exit(0 if all(row["gradus"] is not None for row in rows) else 1)


if __name__ == "__main__":
    main()
