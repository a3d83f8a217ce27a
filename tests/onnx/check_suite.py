"""Runs `gradus onnx-test` over ONNX's conformance suite and compares with what is promised: nothing crashes, at least
97.6 % of the cases pass, and none fails but those that not_passing.txt names with a reason.

    check_suite.py GRADUS SUITE
"""
import pathlib
import subprocess
import sys

PROMISED = 0.976
HERE = pathlib.Path(__file__).parent


def noted(file):
    """name -> reason, of lines `name: reason`."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def verdicts(gradus, suite):
    done = subprocess.run([gradus, "onnx-test", suite], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"onnx-test ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    result = {}
    for line in done.stdout.splitlines()[:-1]:
        word, rest = line.split(" ", 1)
        directory, _, why = rest.partition(": ")
        result["/".join(pathlib.Path(directory).parts[-2:])] = (word, why)
    print(done.stdout.splitlines()[-1])
    return result


def main():
    gradus, suite = sys.argv[1], pathlib.Path(sys.argv[2])
    problems = []
    found = verdicts(gradus, suite)
    failed = {name: f"{word}: {why}" for name, (word, why) in found.items() if word != "PASS"}
    known = noted(HERE / "not_passing.txt")
    problems += [f"{name}: {why}" for name, why in failed.items() if name not in known]
    for name in sorted(known.keys() - failed.keys()):
        print(f"{name}: passes, take it out of not_passing.txt")
    share = 1 - len(failed) / len(found)
    print(f"{share:.2%} of {len(found)} cases pass")
    if share < PROMISED:
        problems.append(f"that is less than {PROMISED:.1%}")
    left_out = HERE.parents[1] / "docs" / "onnx_left_out.txt"
    if left_out.read_text() != (suite / "left_out.txt").read_text():
        problems.append(f"docs/{left_out.name} is not what make_suite.py leaves out: copy {suite / 'left_out.txt'} there")
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
