"""Compiles misuse.cpp once for each case: 0, the correct program, must compile; every other one must fail, with a
diagnosis that leads to the lines of that case, and within ten lines says what misuse.cpp wants. A number in neither
misuse.cpp nor left_out.txt is a finding too.

    check_misuse.py COMPILER ROOT
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "misuse.cpp"
CASES = 104
MOST_LINES = 10
SUBSCRIPTS = (43, 44)  # C++23 sees an operator of two arguments there
MARK = re.compile(r"#(?:el)?if CASE == (\d+)")
SAYS = re.compile(r"\s*// says: (.*)")


def case_lines(text):
    """The lines of each case: {number: range}."""
    starts = [(int(match[1]), number) for number, line in enumerate(text, 1) if (match := MARK.match(line))]
    last = max(number for number, line in enumerate(text, 1) if line.startswith("#endif"))
    ends = [start for _, start in starts[1:]] + [last]
    return {case: range(start + 1, end) for (case, start), end in zip(starts, ends)}


def wanted(text, lines):
    """What the compiler shall say about the case in these lines, by the compiler that they are written for."""
    found = [match[1] for number in lines if (match := SAYS.match(text[number - 1]))]
    return found[0] if found else None


def left_out():
    rows = (HERE / "left_out.txt").read_text().splitlines()
    return {int(row.split()[0]) for row in rows if row and not row.startswith("#")}


def version_of(command):
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout


def exported_warnings(command, root):
    """What gradus::gradus asks of sources that use it, of this compiler."""
    compiler = "Clang,AppleClang" if "clang" in version_of(command) else "GNU"
    written = (pathlib.Path(root) / "gradus" / "CMakeLists.txt").read_text()
    return re.search(r"COMPILE_LANG_AND_ID:CXX," + compiler + r">:([^>]*)>", written)[1].split(";")


class Compiler:
    """Compiles against gradus.h, which is parsed once for all cases."""

    def __init__(self, command, root, folder):
        warnings = exported_warnings(command, root)
        self.is_gcc = "clang" not in version_of(command)
        self.command = [command, "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never", "-I", root] + warnings
        self.header = os.path.join(folder, "all.h")
        with open(self.header, "w") as file:
            file.write("#include <gradus/gradus.h>\n")
        precompile = [command, "-std=c++20", "-I", root, "-x", "c++-header", self.header, "-o", self.header + ".gch"]
        precompile += warnings
        subprocess.run(precompile, check=True)

    def diagnose(self, case, standard=None):
        """None if the case compiles, else what the compiler said."""
        command = self.command + ["-include", self.header, f"-DCASE={case}", str(PROGRAM)]
        if standard:  # the header is parsed anew
            command = self.command + [f"-std={standard}", f"-DCASE={case}", str(PROGRAM)]
        result = subprocess.run(command, capture_output=True, text=True)
        return None if result.returncode == 0 else result.stderr


def judge(case, lines, diagnosis, says=None):
    if diagnosis is None:
        return f"case {case} compiles"
    if says and (says not in diagnosis or len(diagnosis.splitlines()) > MOST_LINES):
        return f"case {case}: expected `{says}` in at most {MOST_LINES} lines, got:\n{diagnosis}"
    reported = {int(number) for number in re.findall(r"misuse\.cpp:(\d+)", diagnosis)}
    if not reported.intersection(lines):
        return f"case {case} fails, but not for its own lines:\n{diagnosis}"
    return None


def main():
    command, root = sys.argv[1:]
    text = PROGRAM.read_text().splitlines()
    cases = case_lines(text)
    problems = [f"case {n} is neither in misuse.cpp nor in left_out.txt" for n in range(1, CASES + 1)
                if n not in cases and n not in left_out()]
    cases = {case: lines for case, lines in cases.items() if case not in left_out() and case > 0}
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(command, root, folder)
        correct = compiler.diagnose(0)
        if correct is not None:
            sys.exit(f"case 0, the correct program, does not compile:\n{correct}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            diagnoses = pool.map(compiler.diagnose, cases)
            says = [wanted(text, lines) if compiler.is_gcc else None for lines in cases.values()]
            problems += filter(None, map(judge, cases, cases.values(), diagnoses, says))
        later = {case: compiler.diagnose(case, "c++2b") for case in SUBSCRIPTS}
        problems += filter(None, (judge(f"{case} of C++23", cases[case], said) for case, said in later.items()))
    print("\n".join(problems) if problems else f"{len(cases)} mistakes do not compile")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
