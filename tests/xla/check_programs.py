"""Runs ONNX's conformance suite and every example with GRADUS_DEVICE=xla, the processor's plugin, and compares with what
is promised: at least 97 of 100 of what passes on the processor passes there, and none fails but those that
not_on_devices.txt names with a reason. One that is named there and passes is a failure, too, unless its reason begins with
"on some machines". docs/accelerators.md has the same table.

    check_programs.py PLUGIN GRADUS SUITE BUILD CTEST

Exit status 77: there is no plugin, nothing was tested.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "onnx"))
from check_suite import noted, verdicts  # noqa: E402

PROMISED = 0.97
SECONDS = 1800  # of one program


def examples(ctest, build):
    """The tests of label `example`: name -> (command, directory). Those that need another test's files are left out."""
    shown = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1", "-L", "example"], capture_output=True,
                           text=True, check=True)
    found = {}
    for test in json.loads(shown.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        if "example" in properties.get("LABELS", []) and "FIXTURES_REQUIRED" not in properties:
            found[test["name"]] = (test["command"], properties.get("WORKING_DIRECTORY", build))
    return found


def why_it_fails(command, directory):
    """Nothing, if the program passes."""
    with tempfile.TemporaryDirectory() as temporary:
        try:
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False,
                                  timeout=SECONDS, env={**os.environ, "TMPDIR": temporary})
        except subprocess.TimeoutExpired:
            return f"it takes more than {SECONDS} seconds"
    if done.returncode in (0, 77):
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f"exit status {done.returncode}: {said[-1] if said else ''}"


def failures_of_examples(found):
    failed = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, why in zip(found, pool.map(lambda each: why_it_fails(*each), found.values())):
            print(f"{'FAIL' if why else 'PASS'} {name}" + (f": {why}" if why else ""), flush=True)
            if why:
                failed[name] = why
    return failed


def main():
    plugin, gradus, suite, build, ctest = sys.argv[1:]
    plugin = os.environ.get("GRADUS_TEST_PLUGIN") or plugin
    if not pathlib.Path(plugin).exists():
        print("NOT TESTED: there is no PJRT plugin for the processor (`make xla-plugin` installs one)")
        sys.exit(77)
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla:{os.path.abspath(plugin)}"
    os.environ["GRADUS_DEVICE"] = "xla"

    failed, total = {}, 0
    not_here = noted(HERE.parent / "onnx" / "not_passing.txt")
    found = {name: verdict for name, verdict in verdicts(gradus, suite).items() if name not in not_here}
    failed |= {name: f"{word}: {why}" for name, (word, why) in found.items() if word != "PASS"}
    print(f"ONNX's suite: {len(found) - len(failed)} of {len(found)} cases that pass on the processor pass on the device")
    total += len(found)
    programs = examples(ctest, build)
    of_examples = failures_of_examples(programs)
    print(f"examples: {len(programs) - len(of_examples)} of {len(programs)} pass on the device")
    failed |= of_examples
    total += len(programs)

    known = noted(HERE / "not_on_devices.txt")
    problems = [f"{name}: {why}" for name, why in failed.items() if name not in known]
    problems += [f"{name}: passes, take it out of not_on_devices.txt"
                 for name in known.keys() - failed.keys() if not known[name].startswith("on some machines")]
    share = 1 - len(failed) / total
    print(f"{share:.2%} of what passes on the processor passes on the device")
    if share < PROMISED:
        problems.append(f"that is less than {PROMISED:.0%}")
    page = (HERE.parents[1] / "docs" / "accelerators.md").read_text()
    problems += [f"docs/accelerators.md lacks the row `{name}`: {why}" for name, why in known.items()
                 if f"| `{name}` | {why} |" not in page]
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
