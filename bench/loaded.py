"""Small steps beside busy processes: what Gradus takes by 2 threads, by 1, and what the peers take, under the same load.

A busy process is `gradus_bench busy --threads 2`: two threads that count, on the cores that everybody has; with
`--busy-threads 1` it keeps one core busy. Times are of single steps whose result is read. The reference is the same step of Gradus by one thread, in a loop that never waits.
"""
import contextlib
import statistics
import subprocess
import time

THREADS = 2
GOALS = {"mean": 1.2, "median": 1.5}  # of the reference under the same load; of the reference on the quiet machine


def per_op(name):
    return lambda line: line["extra"][name]


# What is read of a line: (mean, median), and the unit.
STEP = (lambda line: line["extra"]["mean_us"], lambda line: line["median_us"], "us")
WORKLOADS = {
    "mlp_tiny_b16": {"mlp_tiny_b16": STEP},
    "predict_b1": {"predict_b1": STEP},
    "eager_chain": {
        "eager_chain, forward": (per_op("fwd_mean_us_per_op"), per_op("fwd_us_per_op"), "us/op"),
        "eager_chain, forward+gradient": (per_op("fwd_bwd_mean_us_per_op"), per_op("fwd_bwd_us_per_op"), "us/op"),
    },
}
MODES = {"torch": {"": "eager"}, "jax": {"": "jit", "eager_chain": "nojit"}}
ENVIRONMENT = {"BAR_LOADED": "1"}


def mode_of(peer, workload):
    return MODES[peer].get(workload, MODES[peer][""])


@contextlib.contextmanager
def busy_processes(gradus_bench, count, threads=THREADS):
    processes = [subprocess.Popen([str(gradus_bench), "busy", "--threads", str(threads)]) for _ in range(count)]
    try:
        time.sleep(0.5 if count else 0)
        yield
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("a busy process has ended")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def figures_of(lines, figure):
    """Medians of the runs' means and medians; nothing where a program gave no line."""
    mean, median, _ = figure
    if not lines:
        return None
    return {"mean": statistics.median(map(mean, lines)), "median": statistics.median(map(median, lines))}


def ratio(a, b):
    return a / b if a and b else None


def rows_of(runs):
    """`runs`: {(workload, busy processes): [(program, line), ...]}. One row a figure and load, with ratios to one thread."""
    rows = []
    for (workload, busy), lines in runs.items():
        for name, figure in WORKLOADS[workload].items():
            of = lambda program, key=(workload, busy): figures_of(
                [line for found, line in runs.get(key, []) if found == program], figure)
            ours, alone, quiet = of("gradus"), of("one thread"), of("one thread", (workload, 0))
            row = {"figure": name, "busy": busy, "unit": figure[2], "gradus": ours, "one thread": alone,
                   "mean": ratio(ours and ours["mean"], alone and alone["mean"]),
                   "median": ratio(ours and ours["median"], quiet and quiet["median"])}
            rows.append(row | {peer: of(peer) for peer in MODES})
    return rows


def number(value):
    return f"{value:.3g}" if value is not None else "-"


def pair(figures):
    return f"{number(figures['mean'])}, {number(figures['median'])}" if figures else "-"


def judged(row, what):
    text = number(row[what])
    return f"**{text}**" if row["busy"] and row[what] is not None and row[what] <= GOALS[what] else text


HEADER = ["step: mean, median", "busy processes", "Gradus", "one thread of it", "mean / that of one thread",
          "median / quiet one thread's", "PyTorch", "JAX"]


def cells(row):
    return [f"{row['figure']}, {row['unit']}", str(row["busy"]), pair(row["gradus"]), pair(row["one thread"]),
            judged(row, "mean"), judged(row, "median"), pair(row["torch"]), pair(row["jax"])]
