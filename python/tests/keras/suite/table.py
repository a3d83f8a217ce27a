"""Writes docs/keras_tests.txt from the counts of run.py:  table.py RESULTS RESULTS_OF_JAX

A line for each file of Keras's tests: how many pass on this backend, how many on JAX in the same environment, and how many
excluded_tests.txt leaves out, where * is the whole file.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """Keras 3.15.1's own tests by file: passed on this backend, passed on JAX in the same environment, left out of ours.
Others are skipped by Keras itself, such as those of sparse tensors. `make test-keras` runs them; left out is what
python/tests/keras/suite/excluded_tests.txt lists with reasons, * a whole file. - has not been counted.

"""


def counts(folder):
    table = pathlib.Path(folder) / "results.json"
    return json.loads(table.read_text()) if table.exists() else {}


def rows(ours, theirs):
    for name in sorted(ours.keys() | theirs.keys()):
        found, other = ours.get(name, {}), theirs.get(name)
        left_out = "*" if "excluded" in found else found.get("deselected", 0)
        failed = sum(found.get(kind, 0) for kind in ("failed", "error", "timeout", "crashed"))
        yield name, found.get("passed", 0), "-" if other is None else other.get("passed", 0), left_out, failed


def main(arguments):
    table = list(rows(counts(arguments[0]), counts(arguments[1])))
    lines = [f"{'file':66} {'passed':>7} {'JAX':>7} {'left out':>9}"]
    for name, passed, jax, left_out, failed in table:
        lines.append(f"{name:66} {passed:7} {jax:>7} {left_out:>9}" + (f"  {failed} failed" if failed else ""))
    known = [row for row in table if row[2] != "-"]
    lines.append(f"{'all':66} {sum(row[1] for row in table):7} {sum(row[2] for row in known):7} "
                 f"{sum(row[3] for row in table if row[3] != '*'):9}")
    (HERE.parents[3] / "docs" / "keras_tests.txt").write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
