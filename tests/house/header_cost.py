"""Including gradus.h costs at most four times <iostream>, <functional> and <vector> together, and pulls in no LLVM.
The cost is counted, not timed: the lines that the compiler's parser sees after preprocessing.

    header_cost.py COMPILER ROOT
"""
import subprocess
import sys

LIMIT = 4
BASIS = "#include <iostream>\n#include <functional>\n#include <vector>\n"
GRADUS = "#include <gradus/gradus.h>\n"


def preprocess(compiler, root, program, *options):
    command = [compiler, "-std=c++20", "-I", root, "-x", "c++", "-E", *options, "-"]
    return subprocess.run(command, input=program, capture_output=True, text=True, check=True).stdout


def lines(compiler, root, program):
    return sum(1 for line in preprocess(compiler, root, program, "-P").splitlines() if line.strip())


def main():
    compiler, root = sys.argv[1:]
    basis, cost = lines(compiler, root, BASIS), lines(compiler, root, GRADUS)
    llvm = [word for word in preprocess(compiler, root, GRADUS, "-M").split() if "llvm" in word.lower().split("/")]
    print(f"gradus.h: {cost} lines, {cost / basis:.2f} times the {basis} of <iostream>, <functional> and <vector>")
    if cost > LIMIT * basis:
        sys.exit(f"more than {LIMIT} times: move what users do not need out of the headers that gradus.h includes")
    if llvm:
        sys.exit(f"gradus.h reaches LLVM: {llvm[0]}")


if __name__ == "__main__":
    main()
