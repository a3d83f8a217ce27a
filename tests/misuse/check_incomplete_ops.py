"""Compiles incomplete_ops.cpp once for each case: 0 must compile, every other one must fail with one error, which is the
line that the case asks for.

    check_incomplete_ops.py COMPILER ROOT
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).parent / "incomplete_ops.cpp"
CASE = re.compile(r"#if CASE [!=]= (\d+)  // (.*)")


def diagnose(case):
    command = [sys.argv[1], "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never", "-I", sys.argv[2],
               f"-DCASE={case}", str(PROGRAM)]
    return subprocess.run(command, capture_output=True, text=True).stderr


def judge(case, wanted, diagnosis):
    errors = [line for line in diagnosis.splitlines() if "error:" in line]
    said = [line.replace('\\"', '"') for line in errors]
    if len(said) == 1 and wanted in said[0]:
        return None
    return f"case {case}: expected one error, `{wanted}`, got {len(errors)}:\n{diagnosis}"


def main():
    cases = {int(number): wanted for number, wanted in CASE.findall(PROGRAM.read_text())}
    correct = diagnose(0)
    if correct:
        sys.exit(f"case 0, the complete op, does not compile:\n{correct}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = list(filter(None, map(judge, cases, cases.values(), pool.map(diagnose, cases))))
    print("\n".join(problems) if problems else f"{len(cases)} incomplete ops are refused by one line each")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
