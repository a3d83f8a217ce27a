"""Runs Keras's own tests, those in its wheel, file by file:  run.py RESULTS [--again] [@LIST] [FILES OR FOLDERS...]

RESULTS is a folder. It gets a log of each file and results.json with its counts; files that are in it are not run again,
but with --again. Names are as within keras/src; @LIST is a file of them; without names all tests run. A test that lists
the backends gets this one. Tests in excluded_tests.txt are left out, whole files and folders too. The exit status is 1 if a
test failed. With KERAS_BACKEND=jax all run on JAX, to compare with: table.py writes the counts of both.
"""
import ast
import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import sys
import time

from keras_gradus import finder

HERE = pathlib.Path(__file__).resolve().parent
TESTS = pathlib.Path(importlib.util.find_spec("keras").origin).parent / "src"
MOST_SECONDS = 3600
IS_OURS = os.environ.get("KERAS_BACKEND", finder.NAME) == finder.NAME
FINE = {"passed", "skipped", "deselected", "xfailed", "xpassed", "warning", "excluded"}


class Devices(ast.NodeTransformer):
    """Adds this backend to tables of devices by backend: its processor has JAX's name."""
    count = 0

    def visit_Dict(self, node):
        table = {key.value: value for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)}
        if {"tensorflow", "jax", "torch"} <= table.keys():
            node.keys.append(ast.copy_location(ast.Constant(finder.NAME), node))
            node.values.append(table["jax"])
            self.count += 1
        return node


def files_of(names):
    """The test files that these names of files, folders and lists mean."""
    for name in names or [""]:
        if name.startswith("@"):
            lines = pathlib.Path(name[1:]).read_text().splitlines()
            yield from files_of([line for line in lines if line and not line.startswith("#")])
            continue
        place = TESTS / name
        if not place.exists():
            raise SystemExit(f"{name}: there is no such file or folder in {TESTS}")
        yield from [place] if place.is_file() else sorted(place.rglob("*_test.py"))


def is_excluded(name):
    """True for a file that is left out as a whole."""
    if not IS_OURS:
        return False
    lines = (HERE / "excluded_tests.txt").read_text().splitlines()
    return any(line == name or line.endswith("/") and name.startswith(line) for line in lines)


def ready(file, results):
    """The file to run: a copy if it lists the backends, or if its folder is no package."""
    tree, count = finder.with_branches(file.read_text(), str(file))
    devices = Devices()
    tree = devices.visit(tree)
    if not count + devices.count and (file.parent / "__init__.py").exists():
        return file
    copy = results / file.name
    copy.write_text(ast.unparse(tree))
    return copy


def run_here(options, log, results, name):
    """pytest in this process, a child that has Keras and what its tests share; it ends the process."""
    import pytest
    sys.path.insert(0, str(HERE))
    os.environ.update(GRADUS_KERAS_TEST=name, TF_CPP_MIN_LOG_LEVEL="3")
    with open(log, "w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(results)
    status = 1
    try:
        status = pytest.main(options)
    finally:
        sys.stdout.flush()
        os._exit(status)


def ends_in_time(child):
    """Waits for a process; False if it had to be killed."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def run(file, results):
    """{outcome: count} of a file's tests."""
    name = str(file.relative_to(TESTS))
    if is_excluded(name):
        return {"excluded": 1}
    log = results / (name.replace("/", "_") + ".log")
    options = ["-q", "-W", "ignore", "--no-header", "--tb=native", "-p", "no:cacheprovider", "-p", "conftest",
               "--import-mode=importlib", str(ready(file, results))]
    child = os.fork()
    if child == 0:
        run_here(options, log, results, name if IS_OURS else "")
    if not ends_in_time(child):
        return {"timeout": 1}
    lines = log.read_text().splitlines() or ["nothing"]
    return {outcome.rstrip("s"): int(count) for count, outcome in re.findall(r"(\d+) (\w+?)(?=,| in )", lines[-1])} or \
        {"crashed": 1}


def main(arguments):
    results = pathlib.Path(arguments[0]).absolute()
    results.mkdir(parents=True, exist_ok=True)
    table = results / "results.json"
    known = json.loads(table.read_text()) if table.exists() else {}
    found = {} if "--again" in arguments else dict(known)
    import keras_gradus  # noqa: F401, before Keras: all files' processes are forked from this one, which has imported both
    from keras.src import testing  # noqa: F401
    for module in ("tensorflow", "grain"):  # what takes seconds to import, where it is installed
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    names = [str(file.relative_to(TESTS)) for file in files_of([name for name in arguments[1:] if name != "--again"])]
    for name in names:
        if name not in found:
            known[name] = found[name] = run(TESTS / name, results)
            table.write_text(json.dumps(known, indent=1))
            print(name, found[name], flush=True)
    total = {}
    for name in names:
        for outcome, count in found[name].items():
            total[outcome] = total.get(outcome, 0) + count
    print("all", total)
    faults = [name for name in names if not found[name].keys() <= FINE]
    if faults:
        print(f"tests failed in these files, whose logs are in {results}:", *faults, sep="\n  ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
