"""Writes docs/keras_tests.txt from the counts of run.py:  table.py RESULTS RESULTS_OF_JAX

A line for each file of Keras's tests: how many pass on this backend, how many on JAX in the same environment, and how many
excluded_tests.txt leaves out, where * is the whole file.
"""
import json
import pathlib
import sys

import run

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """Keras 3.15.1's own tests by file: passed on this backend, passed on JAX in the same environment, left out of ours.
Others are skipped by Keras itself, such as those of sparse tensors. `make test-keras` runs them; left out is what
python/tests/keras/suite/excluded_tests.txt lists with reasons, * a whole file. - has not been counted here.

"""


def counts(folder):
    table = pathlib.Path(folder) / "results.json"
    return json.loads(table.read_text()) if table.exists() else {}


def rows(ours, theirs, files):
    """(file, passed, passed by JAX, left out, failed) for each; - where a file was not run."""
    for name in files:
        found, other = ours.get(name), theirs.get(name)
        jax = "-" if other is None or "excluded" in other else other.get("passed", 0)
        if found is None:
            yield name, "-", jax, "-", 0
            continue
        left_out = "*" if "excluded" in found else found.get("deselected", 0)
        failed = sum(found.get(kind, 0) for kind in ("failed", "error", "timeout", "crashed"))
        yield name, "-" if left_out == "*" else found.get("passed", 0), jax, left_out, failed


def main(arguments):
    files = [str(file.relative_to(run.TESTS)) for file in run.files_of([])]
    table = list(rows(counts(arguments[0]), counts(arguments[1]), files))
    lines = [f"{'file':66} {'passed':>7} {'JAX':>7} {'left out':>9}"]
    for name, passed, jax, left_out, failed in table:
        lines.append(f"{name:66} {passed:7} {jax:>7} {left_out:>9}" + (f"  {failed} failed" if failed else ""))
    sums = [sum(row[i] for row in table if isinstance(row[i], int)) for i in (1, 2, 3)]
    lines.append(f"{'all':66} {sums[0]:7} {sums[1] or '-':>7} {sums[2]:>9}")
    fewer = sum(max(0, row[2] - row[1]) for row in table if isinstance(row[1], int) and isinstance(row[2], int))
    if sums[1]:
        lines.append(f"\nIn files that are not left out as a whole, JAX passes {fewer} tests more than this backend, "
                     "file by file:\nthose of sparse tensors, complex dtypes and float8, and what Keras itself skips on backends that a "
                     "test does not name.")
    (HERE.parents[3] / "docs" / "keras_tests.txt").write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
