"""The command under bounds of its memory (ulimit -v), from too little to start up to plenty: each run ends with status
0, or says why on stderr and ends with one of the command's statuses, never by a signal; and what it leaves behind is
whole. Usage: memory_sweep.py GRADUS [STEP_IN_MIB]"""

import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

COMMAND = pathlib.Path(sys.argv[1]).resolve()
STEP = int(sys.argv[2]) if len(sys.argv) > 2 else 12
LEAST, MOST = 60, 1500  # MiB: the loader refuses below; all commands succeed above
NARROW = range(216, 264, 2)  # MiB: where memory runs out while kernels are compiled
STATUSES = {0, 1, 2, 3, 4}
LOADER_REFUSES = 127

CONFIG = """
seed = 1
threads = 2
[data]
kind = "csv"
train = "table.csv"
test = "table.csv"
label = "y"
categories = ["y"]
[[layers]]
type = "dense"
units = 64
activation = "relu"
[[layers]]
type = "dense"
units = 3
[train]
epochs = 2
batch_size = 64
"""


def limited(mebibytes):
    def set_limit():
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return set_limit


def run(folder, arguments, mebibytes=None):
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        preexec_fn=limited(mebibytes) if mebibytes else None,
    )


def faults_of(result, output):
    """What is wrong with a run that ended, and with what it has left in `output`."""
    if result.returncode == LOADER_REFUSES and "error while loading shared libraries" in result.stderr:
        return
    if result.returncode not in STATUSES:
        yield f"ended with {result.returncode}"
    if result.returncode != 0 and not result.stderr.strip():
        yield "failed without a word"
    if "std::" in result.stderr:
        yield "says the name of an exception"
    if "gradus: gradus:" in result.stderr:
        yield "says it from two threads at once"
    if output and output.exists():
        for file in [output] if output.is_file() else output.rglob("*"):
            if file.suffix == ".json" and not file.name.startswith("checkpoint-"):  # these end with their checksum
                try:
                    json.loads(file.read_text())
                except ValueError:
                    yield f"{file.name} is cut off"
            if file.is_file() and file.name.endswith((".csv", ".npy", ".html", ".safetensors")) and not file.stat().st_size:
                yield f"{file.name} is empty"
        if output.is_file() and result.returncode != 0:
            yield f"{output.name} is there though it failed"


def main():
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = ["a,b,c,y"] + [
            f"{random.random():.4f},{random.random():.4f},{random.random():.4f},{random.choice(['u', 'v', 'w'])}"
            for _ in range(600)
        ]
        (folder / "table.csv").write_text("\n".join(rows) + "\n")
        (folder / "config.toml").write_text(CONFIG)
        whole = run(folder, ["train", "config.toml", "--output", "run", "--quiet"])
        assert whole.returncode == 0, whole.stderr
        commands = {
            "train": lambda n: (["train", "config.toml", "--output", f"run{n}", "--quiet"], f"run{n}"),
            "eval": lambda n: (["eval", "run", "--json"], None),
            "predict": lambda n: (["predict", "run", "table.csv", "--output", f"out{n}.csv"], f"out{n}.csv"),
            "inspect": lambda n: (["inspect", "run", "--graph"], None),
            "devices": lambda n: (["devices"], None),
        }
        wrong, runs, succeeded = [], 0, 0
        for command, of in commands.items():
            for mebibytes in sorted({*range(LEAST, MOST, STEP), *NARROW}):
                arguments, output = of(mebibytes)
                result = run(folder, arguments, mebibytes)
                runs += 1
                succeeded += result.returncode == 0
                for fault in faults_of(result, folder / output if output else None):
                    wrong.append(f"{command} within {mebibytes} MiB {fault}: {result.stderr.strip()[-200:]}")
        print("\n".join(wrong) or "no findings")
        print(f"{runs} runs, {succeeded} succeeded, {len(wrong)} findings")
        return 1 if wrong or not succeeded else 0


if __name__ == "__main__":
    sys.exit(main())
