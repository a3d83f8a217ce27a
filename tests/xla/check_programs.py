"""Runs ONNX's conformance suite and every example with GRADUS_DEVICE=xla, the processor's plugin, and compares with what
is promised: at least 97 of 100 of what passes on the processor passes there, and none fails but those that
not_on_devices.txt names with a reason. One that is named there and passes is a failure, too, unless its reason begins with
"on some machines". docs/accelerators.md has the same table.

    check_programs.py PLUGIN GRADUS SUITE BUILD CTEST

What it says is in BUILD/xla-programs.txt, too. A program that skips itself is counted apart. Exit status 77: there is no
plugin, nothing was tested.
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
SKIPPED = 77  # the exit status of a program that could not do its work here
said_so_far = []


def say(line):
    print(line, flush=True)
    said_so_far.append(line)


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


def verdict_of(command, directory):
    """("PASS", ""), ("SKIP", "") or ("FAIL", why)."""
    with tempfile.TemporaryDirectory() as temporary:
        try:
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False,
                                  timeout=SECONDS, env={**os.environ, "TMPDIR": temporary})
        except subprocess.TimeoutExpired:
            return "FAIL", f"it takes more than {SECONDS} seconds"
    if done.returncode in (0, SKIPPED):
        return "SKIP" if done.returncode else "PASS", ""
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "FAIL", f"exit status {done.returncode}: {said[-1] if said else ''}"


def verdicts_of_examples(found):
    """name -> (word, why)"""
    result = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (word, why) in zip(found, pool.map(lambda each: verdict_of(*each), found.values())):
            say(f"{word} {name}" + (f": {why}" if why else ""))
            result[name] = (word, why)
    return result


def tally_of(kind, found):
    """The line for one kind, what failed, and how many ran."""
    failed = {name: why for name, (word, why) in found.items() if word not in ("PASS", "SKIP")}
    skipped = sum(word == "SKIP" for word, _ in found.values())
    ran = len(found) - skipped
    line = f"{kind}: {ran - len(failed)} of {ran} that pass on the processor pass on the device"
    return line + (f"; {skipped} skipped themselves" if skipped else ""), failed, ran


def main():
    plugin, gradus, suite, build, ctest = sys.argv[1:]
    plugin = os.environ.get("GRADUS_TEST_PLUGIN") or plugin
    if not pathlib.Path(plugin).exists():
        print("NOT TESTED: there is no PJRT plugin for the processor (`make xla-plugin` installs one)")
        sys.exit(77)
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"xla:{os.path.abspath(plugin)}"
    os.environ["GRADUS_DEVICE"] = "xla"

    not_here = noted(HERE.parent / "onnx" / "not_passing.txt")
    found = {name: verdict for name, verdict in verdicts(gradus, suite).items() if name not in not_here}
    line, failed, total = tally_of("ONNX's suite", found)
    say(line)
    line, failed_examples, ran = tally_of("examples", verdicts_of_examples(examples(ctest, build)))
    say(line)
    failed |= failed_examples
    total += ran

    known = noted(HERE / "not_on_devices.txt")
    problems = [f"{name}: {why}" for name, why in failed.items() if name not in known]
    problems += [f"{name}: passes, take it out of not_on_devices.txt"
                 for name in known.keys() - failed.keys() if not known[name].startswith("on some machines")]
    share = 1 - len(failed) / total
    say(f"{share:.2%} of what passes on the processor passes on the device")
    if share < PROMISED:
        problems.append(f"that is less than {PROMISED:.0%}")
    page = (HERE.parents[1] / "docs" / "accelerators.md").read_text()
    problems += [f"docs/accelerators.md lacks the row `{name}`: {why}" for name, why in known.items()
                 if f"| `{name}` | {why} |" not in page]
    for problem in problems:
        say(problem)
    pathlib.Path(build, "xla-programs.txt").write_text("".join(line + "\n" for line in said_so_far))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
