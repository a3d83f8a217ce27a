"""Runs Keras's own tests, those in its wheel, file by file:  run.py RESULTS [FILES OR FOLDERS...]

RESULTS is a folder. It gets a log of each file and results.json with its counts; files that are in it are not run again.
Without names all tests run. A test that lists the backends gets this one (finder.with_branches).
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import keras
from keras_gradus import finder

HERE = pathlib.Path(__file__).parent
TESTS = pathlib.Path(keras.__file__).parent / "src"
MOST_SECONDS = 3600


def files_of(names):
    """The test files that these names of files and folders, as within keras/src, mean."""
    for name in names or [""]:
        place = TESTS / name
        yield from [place] if place.is_file() else sorted(place.rglob("*_test.py"))


def ready(file, results):
    """The file to run: a copy if it lists the backends."""
    tree, count = finder.with_branches(file.read_text(), str(file))
    if not count:
        return file
    import ast
    copy = results / file.name
    copy.write_text(ast.unparse(tree))
    return copy


def run(file, results):
    """{outcome: count} of a file's tests."""
    name = str(file.relative_to(TESTS))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--no-header", "--tb=short", "-p", "no:cacheprovider",
               "-p", "conftest", "--import-mode=importlib", str(ready(file, results))]
    log = results / (name.replace("/", "_") + ".log")
    environment = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with open(log, "w") as out:
        try:
            subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=MOST_SECONDS, cwd=results)
        except subprocess.TimeoutExpired:
            return {"timeout": 1}
    lines = log.read_text().splitlines() or ["nothing"]
    return {outcome.rstrip("s"): int(count) for count, outcome in re.findall(r"(\d+) (\w+?)(?=,| in )", lines[-1])} or \
        {"crashed": 1}


def main(arguments):
    results = pathlib.Path(arguments[0]).absolute()
    results.mkdir(parents=True, exist_ok=True)
    table = results / "results.json"
    found = json.loads(table.read_text()) if table.exists() else {}
    for file in files_of(arguments[1:]):
        name = str(file.relative_to(TESTS))
        if name not in found:
            found[name] = run(file, results)
            table.write_text(json.dumps(found, indent=1))
            print(name, found[name], flush=True)
    total = {}
    for counts in found.values():
        for outcome, count in counts.items():
            total[outcome] = total.get(outcome, 0) + count
    print("all", total)


if __name__ == "__main__":
    main(sys.argv[1:])
