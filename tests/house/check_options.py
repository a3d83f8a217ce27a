"""Every struct of options is checked: one with numbers says in `ranges()` which they may be, and tests/train/options_test.cpp
tries all of them; of ops, which check by themselves, tests/ops/op_options_test.cpp does. Prints what is missing; exit 1
if anything is.

    check_options.py ROOT
"""
import pathlib
import re
import sys

STRUCT = re.compile(r"struct (\w*Option\w*) \{\n(.*?)\n *\};", re.S)
NUMBER = re.compile(r"^\s*(?:std::(?:optional|vector|array)<)?"
                    r"(?:double|float|int|std::u?int\d+_t|std::size_t|Schedule|Sizes)\b(?! *\()")
# Rooms whose options no user gives, and structs that others are made of.
INTERNAL = {"backend", "compiler", "graph"}
CHECKED_ELSEWHERE = {
    "Options": "made of FitOptions and CheckpointOptions, which are checked",
    "WindowOptions": "made of PoolingOptions and ConvolutionOptions by the library alone",
}
# Ops that take options through ranges(), as tests/train/options_test.cpp tries.
FUNCTIONS = {"WhileOptions", "NormalOptions", "UniformOptions", "IntegerOptions"}


def fields_of(body):
    """The lines that declare fields, without comments and functions."""
    depth, lines = 0, []
    for line in body.split("\n"):
        code = line.split("//")[0]
        if depth == 0 and not re.search(r"\)\s*(const\s*)?\{", code):
            lines.append(code)
        depth += code.count("{") - code.count("}")
    return lines


def problems_of(path, room, text, tests):
    for name, body in STRUCT.findall(text):
        if not any(NUMBER.match(line) for line in fields_of(body)) or name in CHECKED_ELSEWHERE:
            continue
        of_op = room == "ops" and name not in FUNCTIONS
        if not of_op and "ranges()" not in body:
            yield f"{path}: {name} has numbers and no ranges(): say what they may be (gradus/base/ranges.h)"
        shown = name.removesuffix("Of")
        if not re.search(rf"\b(?:\w+::)?{shown}\b", tests["ops" if of_op else "train"]):
            yield f"{path}: {name} is tried by no test: add it to {'tests/ops/op_options_test.cpp' if of_op else 'tests/train/options_test.cpp'}"


def main():
    root = pathlib.Path(sys.argv[1])
    tests = {"train": (root / "tests/train/options_test.cpp").read_text(),
             "ops": (root / "tests/ops/op_options_test.cpp").read_text()}
    found = []
    for path in sorted((root / "gradus").rglob("*.h")):
        room = path.relative_to(root / "gradus").parts[0]
        if room not in INTERNAL:
            found += problems_of(path.relative_to(root), room, path.read_text(), tests)
    print("\n".join(found) if found else "every option is checked")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
