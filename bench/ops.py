"""The sweep over ops and layers (`run.py --workloads ops`): each row of bench/ops/ by value and by gradient, op by op and
inside a function, beside the peers, all in turn in one run. It finds the rows that are slower than the best peer, and those
that are farthest from what the machine can do.

Each program runs all the time and answers requests (bench/ops/serve.cpp, ops_peer.py). Where PyTorch runs inside a function,
it is its eager mode."""
import contextlib
import json
import math
import os
import pathlib
import selectors
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent
SLOW, SUSPECT = 1.2, 1.0  # ratios: reported; measured at all sizes
FARTHEST = 10
LIMIT_S = 60  # of one answer
LONGEST_S = 0.5  # a call that would take longer beyond the cache is left out: it is no memory that bounds it
EXTENTS = ("small", "cached", "beyond")
MODES = {"gradus": ("eager", "function"), "torch": ("eager",), "jax": ("eager", "function")}
TOLERANCE = 2e-3  # of summaries, whose order of sums differs


class Worker:
    """A program that answers one JSON line with another; it is started again where it ended or took too long."""

    def __init__(self, command, environment):
        self.command, self.environment, self.process = command, environment, None
        self.answers = 0
        self.is_broken = False  # it ended before any answer

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=self.environment, cwd=BENCH, bufsize=1)

    def ask(self, request):
        if self.process is None:
            self.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # answer() says how it ended
                self.process.stdin.write(json.dumps(request) + "\n")
                self.process.stdin.flush()
            return self.answer()
        except (OSError, ValueError) as problem:
            self.stop()
            self.is_broken = self.answers == 0
            return {"error": f"{self.command[0]}: {problem}"}

    def answer(self):
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(LIMIT_S):
                raise ValueError(f"no answer within {LIMIT_S} s")
        line = self.process.stdout.readline()
        if not line:
            raise ValueError(f"ended with status {self.process.wait()}")
        self.answers += 1
        return json.loads(line)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def start_workers(gradus_bench, peers, threads):
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    commands = {"gradus": [str(gradus_bench), "ops", "--threads", str(threads)]}
    commands |= {peer: [str(python), str(BENCH / f"ops_{peer}.py")] for peer, python in peers.items() if peer in MODES}
    return {name: Worker(command, environment) for name, command in commands.items()}


def programs_of(row, workers, what="value"):
    """(program, mode) of everybody that has the row, Gradus first. JAX differentiates op by op in milliseconds: no peer."""
    return [(name, mode) for name in workers
            if (name == "gradus" or row[name]) and not workers[name].is_broken for mode in MODES[name]
            if (name, mode, what) != ("jax", "eager", "gradient")
            and not (row["shaped_by_values"] and mode == "function")]


def measure(workers, row, place, what, n, seconds, rounds):
    """{(program, mode): answer}, of each the round with the least median."""
    best = {}
    for _ in range(rounds):
        for name, mode in programs_of(row, workers, what):
            if "error" in best.get((name, mode), {}):
                continue
            request = {"row": place if name == "gradus" else row, "n": n, "what": what, "mode": mode, "seconds": seconds}
            answer = workers[name].ask(request)
            before = best.get((name, mode))
            if before is None or "error" in answer or answer["median_us"] < before["median_us"]:
                best[name, mode] = answer
    return best


# ---------------------------------------------------------------- what the answers mean

def peers_in(mode):
    """Everybody that counts beside Gradus in a mode."""
    return [(peer, own) for peer in ("torch", "jax") for own in MODES[peer]
            if own == mode or (own == "eager" and mode == "function" and own == MODES[peer][-1])]


def is_finite(number):
    """JSON of C++ has null for what is not."""
    return number is not None and math.isfinite(number)


def apart(ours, theirs):
    """How far two summaries are apart, as a share of the values' size; infinite for other numbers of elements."""
    if len(ours) != len(theirs):
        return math.inf
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a[0] != b[0]:
            return math.inf
        if not all(map(is_finite, a + b)):
            worst = max(worst, 0.0 if is_finite(a[2]) == is_finite(b[2]) else math.inf)
            continue
        size = max(abs(b[2]), 1e-6)
        for mine, other, scale in zip(a[1:], b[1:], (size, size, max(abs(b[3]), 1e-6))):
            worst = max(worst, abs(mine - other) / scale)
    return worst


def least_us(answer, extent, rates):
    """What the machine needs at least: for the operations, or to read the inputs and write the results."""
    memory = rates["memory"] if extent == "beyond" else rates["cached"] * rates["threads"]
    return max(answer["flops"] / (rates["flops"] * rates["threads"]), answer["bytes"] / memory) * 1e6


def lines_of(row, what, extent, answers, rates):
    """One line a mode: ours, the best peer, the ratio, the share of the limit; and what is wrong."""
    function = answers.get(("gradus", "function"), {})
    least = least_us(function, extent, rates) if "flops" in function else None
    for mode in MODES["gradus"]:
        ours = answers.get(("gradus", mode), {})
        theirs = {f"{peer} {own}": answers[peer, own]["median_us"] for peer, own in peers_in(mode)
                  if "median_us" in answers.get((peer, own), {})}
        best = min(theirs, key=theirs.get, default=None)
        if not ours:
            continue
        line = {"row": row["name"], "what": what, "mode": mode, "extent": extent, "us": ours.get("median_us"),
                "best": best, "peer_us": theirs.get(best), "limit_us": least}
        if line["us"] and best:
            line["ratio"] = line["us"] / line["peer_us"]
        if line["us"] and least:
            line["of_limit"] = line["us"] / least
        yield line


def problems_of(row, what, answers):
    """Errors, and values that disagree."""
    ours = answers.get(("gradus", "function"), answers.get(("gradus", "eager"), {}))
    for (name, mode), answer in answers.items():
        if "error" in answer:
            yield f"{row['name']}, {what}: {name} {mode}: {answer['error']}"
        elif not row["draws"] and "values" in ours and (distance := apart(ours["values"], answer["values"])) > TOLERANCE:
            yield (f"{row['name']}, {what}: {name} {mode} is {distance:.1e} apart: {answer['values'][:2]}, "
                   f"Gradus {ours['values'][:2]}")


def has_gradient(row):
    return row["gradients"] != 0 and bool(row["inputs"]) and row["inputs"][0].startswith(("f32", "spd"))


def sweep(workers, rows, rates, seconds, rounds, names, save):
    """(lines, problems) of all rows that a peer has, or of those named; save(lines, problems) after each row."""
    lines, problems = [], []
    for place, row in enumerate(rows):
        if all(name == "gradus" for name, _ in programs_of(row, workers)) or (names and row["name"].split()[0] not in names):
            continue
        for what in ("value", "gradient") if has_gradient(row) else ("value",):
            print(f"ops: {place + 1} of {len(rows)}, {row['name']}, {what}", file=sys.stderr)
            for extent in ("cached", "small", "beyond"):
                n = row["extents"][EXTENTS.index(extent)]
                if extent == "beyond" and n / row["extents"][1] * slowest > LONGEST_S:
                    continue
                answers = measure(workers, row, place, what, n, seconds, rounds)
                found = list(lines_of(row, what, extent, answers, rates))
                lines += found
                problems += problems_of(row, what, answers)
                slowest = max(answer.get("median_us", 0) for answer in answers.values()) * 1e-6
                if extent == "cached" and all(line.get("ratio", 0) <= SUSPECT for line in found):
                    break
        save(lines, problems)
    return lines, problems


# ---------------------------------------------------------------- text

HEADER = ["row", "", "mode", "size", "Gradus, us", "best peer, us", "", "ratio", "of the limit"]


def cells(line):
    number = lambda value: f"{value:.3g}" if value is not None else "-"
    return [line["row"], line["what"], line["mode"], line["extent"], number(line["us"]), number(line["peer_us"]),
            line["best"] or "", number(line.get("ratio")), number(line.get("of_limit"))]


def slow(lines):
    return sorted((line for line in lines if line.get("ratio", 0) > SLOW), key=lambda line: -line["ratio"])


def farthest(lines):
    """The rows farthest from the limit, where a call's own cost does not decide: by the function, once a row."""
    found = {}
    for line in lines:
        if line["mode"] == "function" and line["extent"] != "small" and line.get("of_limit"):
            name = line["row"], line["what"]
            if name not in found or found[name]["of_limit"] < line["of_limit"]:
                found[name] = line
    return sorted(found.values(), key=lambda line: -line["of_limit"])[:FARTHEST]


def text(lines, problems, table, about):
    ratios = [line["ratio"] for line in lines if line.get("ratio") and line["extent"] == "cached"]
    parts = [about, f"{len({line['row'] for line in lines})} rows; geometric mean of {len(ratios)} ratios at the cached size: "
             f"{math.exp(sum(map(math.log, ratios)) / max(1, len(ratios))):.2f}.",
             f"Above {SLOW}:", table(HEADER, [cells(line) for line in slow(lines)]),
             "Farthest from the limit (operations, or bytes in and out, at the rates of all threads):",
             table(HEADER, [cells(line) for line in farthest(lines)])]
    if problems:
        parts += ["Rows that fail or whose values disagree:", "\n".join(f"- {each}" for each in problems)]
    return "\n\n".join(parts) + "\n"


def run(gradus_bench, peers, threads, seconds, rounds, names, save):
    """Everything measured: (lines, problems, rates of a thread, seconds that it took)."""
    workers = start_workers(gradus_bench, peers, threads)
    began = time.time()
    try:
        offered = workers["gradus"].ask({"list": True})
        rates = offered["rates"] | {"threads": threads}
        lines, problems = sweep(workers, offered["rows"], rates, seconds, rounds, names, save)
    finally:
        for worker in workers.values():
            worker.stop()
    return lines, problems, rates, time.time() - began
