#!/usr/bin/env python3
"""Runs gradus_bench and the installed peers in turn, in one run, and prints what Gradus takes as a share of the best peer.

Gradus, a peer, Gradus, the next peer, ...: each run of a peer makes a pair with the run of Gradus right before it, so that
a disturbance hits both alike. A figure is the median of its runs. Peers that took much longer than the best so far are left
alone. Only ratios taken in one run count. WORKLOADS.md says what each workload is.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import loaded
import ops
import ops_public
import ranks
import report
from report import WORKLOADS
from workloads import CPP, MODES, PYTHON_WORKLOADS, UNBOUND_MODES

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
THREADS = 2
OTHERS = 0.0  # cores that others kept busy as the run began
QUIET = 0.1  # cores that others may keep busy on a machine that counts as quiet
PACKAGES_PYTHON = ROOT / "build/python-venv/bin/python"  # for which the Python package is built
OPS_SECONDS, OPS_ROUNDS = 0.02, 2  # of a measure of `ops`, after as much time without a look at the clock
FAR_BEHIND = [1.5, 1.25]  # times the best, after one round and after more: such a peer runs no more


@dataclasses.dataclass
class Program:
    name: str
    command: list
    environment: dict = dataclasses.field(default_factory=dict)
    compiles_anew: bool = False  # finds nothing that earlier runs left on disk


def cpu():
    """Model and vendor of the processor."""
    fields = {}
    with open("/proc/cpuinfo") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    return fields.get("model name", platform.machine()), fields.get("vendor_id", "")


def unbound_mkl(folder):
    """The library that lifts MKL's check of the vendor; nothing on Intel's processors, or without a compiler."""
    if cpu()[1] == "GenuineIntel":
        return None
    library = pathlib.Path(folder, "mkl_vendor.so")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, BENCH / "mkl_vendor.c"], check=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"torch+ is left out: {problem}", file=sys.stderr)
        return None
    return library


def gradus(gradus_bench, workload, *options):
    return Program(report.GRADUS, [str(gradus_bench), workload, "--threads", str(THREADS), *options])


def peer_programs(workload, peers, mkl):
    anew = any(figure.compiling for figure in WORKLOADS[workload].figures)
    for peer, python in peers.items():
        for mode in MODES[peer].get(workload, MODES[peer][""]):
            command = [str(python), str(BENCH / f"peer_{peer}.py"), workload, mode]
            yield Program(f"{peer} {mode}", command, compiles_anew=anew)
            if peer == "torch" and mkl and mode in UNBOUND_MODES:
                yield Program(f"torch+ {mode}", command, {"LD_PRELOAD": str(mkl)})


def python_programs(workload, peers, gradus_bench, inputs):
    """A workload in Python: our program, and those beside it."""
    row = PYTHON_WORKLOADS[workload]
    script = str(BENCH / row.script)
    build = gradus_bench.parents[1]  # the package with the library of the wheel, and compiled as an installed one is
    environment = {"PYTHONPATH": str(build / "python"), "LD_LIBRARY_PATH": str(build / "bundled"), "PYTHONDONTWRITEBYTECODE": ""}
    ours = Program(report.GRADUS, [str(PACKAGES_PYTHON), script, "gradus", workload, ""], environment)

    def command(peer, python, mode):
        if row.peers:
            return [str(python), str(BENCH / f"peer_{peer}.py"), row.peers, mode]
        by = mode if row.script == "keras_rows.py" else peer
        return [str(python), script, by, workload, mode]
    beside = [Program(f"{peer} {mode}", command(peer, python, mode))
              for peer, python in peers.items() for mode in row.modes.get(peer, [])]
    if workload == "keras_import" and "jax" in peers:  # which Keras on NumPy imports, so that both do
        ours = Program(report.GRADUS, [str(peers["jax"]), *ours.command[1:]], environment)
        beside.append(Program("numpy", [str(peers["jax"]), script, "numpy", workload, ""]))
    if row.native:
        beside.append(Program(CPP, gradus(gradus_bench, row.native, *inputs).command))
    return ours, beside


def last_json_line(output):
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no JSON line in its output")


def run_program(program, seconds, limit_s=900):
    """The JSON line of one run, or nothing where it fails; the reason goes to stderr."""
    environment = os.environ | {"OMP_NUM_THREADS": str(THREADS), "BAR_MIN_S": str(seconds),
                                "T0": repr(time.time())} | program.environment
    try:
        with tempfile.TemporaryDirectory() as empty:
            if program.compiles_anew:  # PyTorch alone keeps what it compiled, unless told otherwise
                environment["TORCHINDUCTOR_CACHE_DIR"] = empty
            result = subprocess.run(program.command, capture_output=True, text=True, env=environment, cwd=BENCH,
                                    timeout=limit_s)
        if result.returncode != 0:
            raise ValueError(f"exit {result.returncode}: {result.stderr.strip()[-400:]}")
        return last_json_line(result.stdout)
    except (ValueError, OSError, subprocess.TimeoutExpired) as problem:
        print(f"  {program.name}: {problem}", file=sys.stderr)
        return None


def still_running(workload, peers, runs):
    """The peers of which another run may matter: near the best in some figure that decides, and not failing."""
    near = set()
    for figure in WORKLOADS[workload].deciding():
        medians = {name: value for name in report.peers_of(runs) if figure.counts(name)
                   if (value := report.median_of(figure, report.lines_of(runs, name))) is not None}
        rounds = max((len(report.lines_of(runs, name)) for name in medians), default=1)
        bound = FAR_BEHIND[min(rounds, len(FAR_BEHIND)) - 1]
        near |= {name for name, value in medians.items() if value <= bound * min(medians.values())}
    return [program for program in peers if program.name in near]


def run_workload(workload, ours, peers, rounds, seconds):
    """(program, line) of every run, in order; and the peers that failed."""
    runs, failed = [], []

    def run(program, number):
        print(f"{workload}: round {number} of {rounds}, {program.name}", file=sys.stderr)
        line = run_program(program, seconds)
        if line is not None:
            runs.append((program.name, line))
        return line is not None

    for number in range(1, rounds + 1):
        if not peers:
            run(ours, number)
        for program in peers:
            run(ours, number)
            if not run(program, number) and program.name not in failed:
                failed.append(program.name)
        peers = still_running(workload, peers, runs)
    return runs, failed


def write_inputs(workload, peers, folder):
    """What the peers compute with, as a file for Gradus: by the Python of any of them, since it takes NumPy."""
    if not peers or WORKLOADS[workload].check is None:
        return None
    workload = PYTHON_WORKLOADS[workload].native if workload in PYTHON_WORKLOADS else workload
    if not workload:
        return None
    file = pathlib.Path(folder, workload + ".npz")
    result = subprocess.run([str(next(iter(peers.values()))), str(BENCH / "inputs.py"), workload, str(file)],
                            capture_output=True, text=True, cwd=BENCH)
    if result.returncode != 0:
        raise SystemExit(f"run.py: inputs.py {workload}: {result.stderr.strip()[-400:]}")
    return file


def installed_peers(wanted):
    pythons = {peer: ROOT / f".venv-{peer}" / "bin" / "python" for peer in wanted}
    absent = [f"{peer} is not installed (make bench-peers PEERS={peer})" for peer, python in pythons.items()
              if not python.exists()]
    for line in absent:
        print(f"{line}: left out", file=sys.stderr)
    return {peer: python for peer, python in pythons.items() if python.exists()}, absent


def machine():
    return {"cpu": cpu()[0], "cores": os.cpu_count(), "threads": THREADS, "date": time.strftime("%Y-%m-%d"),
            "others": OTHERS}


def siblings(core):
    try:
        return pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(core)


def few_of(available, siblings_of, wanted=THREADS):
    """As many cores as threads; hardware threads of one core only where there is no other core left."""
    order, seen, doubles = [], set(), []
    for core in sorted(available):
        (doubles if siblings_of(core) in seen else order).append(core)
        seen.add(siblings_of(core))
    return (order + doubles)[:wanted]


def busy_cores(seconds=1.0):
    """How many cores other processes keep busy."""
    def busy_s():
        ticks = [int(each) for each in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return (sum(ticks[:3]) + ticks[5] + ticks[6]) / os.sysconf("SC_CLK_TCK")
    before = busy_s()
    time.sleep(seconds)
    return (busy_s() - before) / seconds


def note_load():
    """The cores that others keep busy as the run begins. Above QUIET no program waits for quiet, which would not come."""
    others = busy_cores()
    if others > QUIET:
        print(f"Others keep {others:.2f} cores busy: nobody waits for quiet, and the report says so.", file=sys.stderr)
        os.environ.update(loaded.ENVIRONMENT)
    return others


def use_few_cores():
    """Every program gets the same cores, as many as threads: frameworks take all that they see."""
    os.sched_setaffinity(0, few_of(os.sched_getaffinity(0), siblings, THREADS))


def compare(arguments, workloads, folder):
    """Everything measured, as it is written to --json."""
    peers, absent = installed_peers(arguments.peers)
    mkl = unbound_mkl(folder) if "torch" in peers else None
    result = {"machine": machine(), "limits": None, "absent": absent, "rows": [], "runs": {}, "limit_runs": []}
    given = {}
    for workload in workloads:
        print(f"{workload}: limits", file=sys.stderr)
        limits = run_program(gradus(arguments.gradus_bench, "limits"), arguments.seconds)
        if limits is not None:
            result["limit_runs"].append(limits["extra"])
            result["limits"] = report.machine_of(result["limit_runs"])
        file = write_inputs(workload, peers, folder)
        is_python = workload in PYTHON_WORKLOADS
        given[workload] = file is not None or is_python  # the scripts make the same numbers
        options = ["--inputs", str(file)] if file else []
        if is_python:
            ours, beside = python_programs(workload, peers, arguments.gradus_bench, options)
        else:
            ours = gradus(arguments.gradus_bench, workload, *options)
            beside = list(peer_programs(workload, peers, mkl))
        runs, failed = run_workload(workload, ours, beside, arguments.rounds, arguments.seconds)
        result["runs"][workload] = runs
        result["absent"] += [f"{name} failed on {workload}" for name in failed]
        result["rows"] = [row for name, of_workload in result["runs"].items()
                          for row in report.summarize(name, of_workload, result["limits"], given[name])]
        write(arguments, result)  # after each workload: what was measured stays, whatever becomes of the rest
    return result


def write(arguments, result):
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(report.markdown(result))


def passes_of(gradus_bench):
    return subprocess.run([str(gradus_bench), "--passes"], capture_output=True, text=True, check=True).stdout.split()


def measure_worth(arguments, workloads):
    """Gradus alone, in turn with each pass left out and with all of them."""
    found = {}
    for workload in workloads:
        figure = WORKLOADS[workload].figures[0]
        found[workload] = {}
        for name in arguments.worth or passes_of(arguments.gradus_bench):
            both = [], []
            for number in range(1, arguments.rounds + 1):
                print(f"{workload}: round {number} of {arguments.rounds}, with and without {name}", file=sys.stderr)
                for lines, options in zip(both, ([], ["--disable", name])):
                    line = run_program(gradus(arguments.gradus_bench, workload, *options), arguments.seconds)
                    if line is not None:
                        lines.append(line)
            found[workload][name] = report.worth(figure, *both) if len(both[0]) == len(both[1]) else None
    text = report.worth_table(found)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    print(text)


def measure_loaded(arguments):
    """Small steps beside busy processes, everybody in turn; only workloads that were asked for, if any of them was."""
    peers, _ = installed_peers([peer for peer in loaded.MODES if peer in arguments.peers])
    wanted = [workload for workload in loaded.WORKLOADS if workload in arguments.workloads]
    runs = {}
    for busy in arguments.loaded or [0, 1, 2]:
        with loaded.busy_processes(arguments.gradus_bench, busy, arguments.busy_threads):
            for number in range(1, arguments.rounds + 1):
                for workload in wanted or loaded.WORKLOADS:
                    programs = [gradus(arguments.gradus_bench, workload),
                                Program("one thread", [str(arguments.gradus_bench), workload, "--threads", "1"])]
                    programs += [Program(peer, [str(python), str(BENCH / f"peer_{peer}.py"), workload,
                                                loaded.mode_of(peer, workload)]) for peer, python in peers.items()]
                    for program in programs:
                        print(f"{workload} beside {busy}: round {number} of {arguments.rounds}, {program.name}",
                              file=sys.stderr)
                        program.environment |= loaded.ENVIRONMENT
                        line = run_program(program, arguments.seconds)
                        if line is not None:
                            runs.setdefault((workload, busy), []).append((program.name, line))
    rows = [loaded.cells(row) for row in loaded.rows_of(runs)]
    load = report.load_text(machine()["others"]) + f" A busy process has {arguments.busy_threads} threads."
    if arguments.markdown:
        arguments.markdown.write_text(report.markdown_table(loaded.HEADER, rows) + "\n\n" + load + "\n")
    print(report.text_table(loaded.HEADER, rows), load, sep="\n")


def measure_ranks(arguments, workloads):
    """Two processes that train together."""
    peers, _ = installed_peers(arguments.peers)
    rows = ranks.measure(arguments.gradus_bench, peers, BENCH, workloads, arguments.rounds, arguments.seconds)
    if arguments.markdown:
        arguments.markdown.write_text(report.markdown_table(ranks.HEADER, rows) + "\n")
    print(report.text_table(ranks.HEADER, rows))


def measure_ops(arguments):
    """Every op and layer that a peer has, too."""
    peers, absent = installed_peers([peer for peer in arguments.peers if peer in ops.MODES])

    def save(lines, problems):  # after each row: what was measured stays, whatever becomes of the rest
        if arguments.json:
            arguments.json.write_text(json.dumps({"machine": machine(), "absent": absent, "lines": lines,
                                                  "problems": problems}, indent=1) + "\n")

    lines, problems, rates, seconds = ops.run(arguments.gradus_bench, peers, THREADS, OPS_SECONDS,
                                              min(arguments.rounds, OPS_ROUNDS), arguments.ops, save)
    problems += ops_public.findings(row["name"] for row in ops_public.rows_of(arguments.gradus_bench))
    save(lines, problems)
    about = machine()
    heading = (f"{about['date']}, {about['cpu']}, {about['cores']} cores, threads: {about['threads']}. "
               + report.load_text(about["others"]) + f" The sweep took {seconds / 60:.0f} minutes. A thread does "
               f"{rates['flops'] / 1e9:.0f} GFLOP/s, and moves {rates['cached'] / 1e9:.0f} GB/s from the second cache and "
               f"{rates['memory'] / 1e9:.0f} GB/s of memory.")
    if arguments.markdown:
        arguments.markdown.write_text(ops.text(lines, problems, report.markdown_table, heading))
    print(ops.text(lines, problems, report.text_table, heading))
    sys.exit(1 if problems else 0)


def print_profiles(arguments, workloads):
    texts = []
    for workload in workloads:
        print(f"{workload}: profile", file=sys.stderr)
        result = subprocess.run([str(arguments.gradus_bench), workload, "--profile"], capture_output=True, text=True,
                                env=os.environ | {"BAR_MIN_S": str(arguments.seconds)}, cwd=BENCH)
        if result.returncode == 0:
            texts.append(result.stdout)
        else:
            print(f"  {result.stderr.strip()[-400:]}", file=sys.stderr)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(texts))
    print("\n".join(texts))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=[*WORKLOADS, *ranks.WORKLOADS, "ops"],
                        default=[name for name in WORKLOADS if name not in PYTHON_WORKLOADS], metavar="NAME",
                        help="of " + " ".join(WORKLOADS) + "; by two processes, of " + " ".join(ranks.WORKLOADS)
                        + "; or ops: every op and layer by itself")
    parser.add_argument("--ops", nargs="+", default=[], metavar="NAME", help="of the workload ops, these rows alone")
    parser.add_argument("--threads", type=int, default=THREADS, help=f"threads, and cores, of each program ({THREADS})")
    parser.add_argument("--peers", nargs="*", choices=MODES, default=list(MODES), metavar="PEER",
                        help="of " + " ".join(MODES) + "; those not installed are left out")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs (5)")
    parser.add_argument("--seconds", type=float, default=2, help="time that a step is repeated in one run (2)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write rows, all lines and the machine there")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the report there")
    parser.add_argument("--worth", nargs="*", metavar="PASS",
                        help="instead: how much longer Gradus takes without each of these compiler passes, or all")
    parser.add_argument("--profiles", action="store_true", help="instead: where the time of Gradus goes, by kernel")
    parser.add_argument("--loaded", nargs="*", type=int, metavar="PROCESSES",
                        help="instead: small steps beside so many busy processes of two threads each (0 1 2)")
    parser.add_argument("--busy-threads", type=int, default=loaded.THREADS, metavar="N",
                        help=f"threads of a busy process ({loaded.THREADS}); 1 keeps one core busy")
    parser.add_argument("--gradus-bench", type=pathlib.Path, default=ROOT / "build/release/bin/gradus_bench",
                        metavar="PROGRAM", help="another build of gradus_bench")
    return parser.parse_args()


def check_python_rows(arguments):
    if not set(arguments.workloads) & set(PYTHON_WORKLOADS):
        return
    build = arguments.gradus_bench.parents[1]
    if not (build / "python/gradus").exists() or not (build / "bundled").exists():
        sys.exit(f"run.py: {build} has no Python package: make bench WORKLOADS=py_op makes it")
    if arguments.worth is not None or arguments.loaded is not None or arguments.profiles:
        sys.exit("run.py: workloads in Python are measured beside their peers alone, without --worth, --loaded and --profiles")


def main():
    global THREADS, OTHERS
    arguments = parse_arguments()
    arguments.gradus_bench = arguments.gradus_bench.resolve()
    if not arguments.gradus_bench.exists():
        sys.exit(f"run.py: {arguments.gradus_bench} does not exist: make bench builds it")
    THREADS = arguments.threads
    OTHERS = note_load()
    use_few_cores()
    check_python_rows(arguments)
    if "ops" in arguments.workloads:
        if len(arguments.workloads) > 1:
            sys.exit("run.py: ops is measured apart from other workloads")
        return measure_ops(arguments)
    together = [workload for workload in arguments.workloads if workload in ranks.WORKLOADS]
    if together:
        if len(together) < len(arguments.workloads):
            sys.exit("run.py: workloads of several processes are measured apart from the others")
        return measure_ranks(arguments, together)
    if arguments.worth is not None:
        return measure_worth(arguments, arguments.workloads)
    if arguments.loaded is not None:
        return measure_loaded(arguments)
    if arguments.profiles:
        return print_profiles(arguments, arguments.workloads)
    with tempfile.TemporaryDirectory() as folder:
        result = compare(arguments, arguments.workloads, folder)
    print(report.text_table(report.HEADER, [report.cells(row) for row in result["rows"]]))
    print(report.machine_text(result["limits"]))
    print(report.load_text(result["machine"]["others"]))
    complaints = list(report.complaints(result["rows"]))
    sys.exit("\n".join(complaints) if complaints else 0)


if __name__ == "__main__":
    main()
