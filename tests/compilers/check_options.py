"""Sets every option of every public option struct in the natural way, as users would: a program that is made from the
headers, which each compiler has to take without a warning (-Wall -Wextra as errors). A type of field that has no natural
value in the table below is a finding. Exits with 77, skipped, where the compiler is not installed.

    check_options.py COMPILER ROOT [PROGRAM]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import option_structs

# The text that a user writes after `.field = `; several texts are tried in turn.
NATURAL = {
    "bool": ["true"],
    "double": ["0.5"],
    "float": ["0.5f"],
    "char": ["';'"],
    "int": ["count"],
    "std::int32_t": ["count"],
    "std::int64_t": ["count", "long_count"],
    "std::uint32_t": ["1"],
    "std::uint64_t": ["1"],
    "std::size_t": ["64 * MiB"],
    "Steps": ["count", "long_count", "1000", "1e4", "0.9 * count"],
    "std::string": ['"name"', "name"],
    "std::filesystem::path": ['"folder"', "name"],
    "Tensor": ["x"],
    "Activation": ["relu", "tanh", "sigmoid", "softmax", "[](Tensor t) { return t * sigmoid(t); }"],
    "Initializer": ["initializers::zeros", "initializers::he_normal"],
    "Regularizer": ["regularizers::L2(0.01)"],
    "Padding": ["Padding::same"],
    "DType": ["f32"],
    "Scalar": ["1", "0.5"],
    "Sizes": ["{2, 3}"],
    "Paddings": ["{{1, 1}}"],
    "Shape": ["{2, 3}"],
    "Single": ["2", "count"],
    "Pair": ["2", "{2, 3}", "count"],
    "Triple": ["2", "{1, 2, 3}", "count"],
    "Spec": ["{f32, {any_size, 8}}"],
    "Device": ["cpu(0)"],
    "Strategy": ["MirroredStrategy()"],
    "Metric": ["SparseCategoricalAccuracy()"],
    "Callback": ["early_stopping()"],
    "AnyDataset": ["dataset"],
    "Schedule": ["0.1", "CosineDecay({.initial_learning_rate = 0.1, .decay_steps = count})"],
    "PolicyOption": ['"mixed_float16"', "mixed_bfloat16", "{f16, f32, true}"],
    "Policy": ["mixed_float16"],
    "BlockSize": ["{1, 16}"],
    "Renaming": ["[](const std::string& given) { return given; }"],
    "FitMetrics": ["{SparseCategoricalAccuracy()}", '{{"a", {SparseCategoricalAccuracy()}}}'],
    "ValidationFrequency": ["count", "{1, 2, 5}"],
    "ClassWeights": ["{{0, 1}, {1, 8.5}}"],
    "NgramWidths": ["count", "{1, 2}"],
    "Subset": ["data::Subset::training"],
    "Bounds<Tensor>": ["{{.lb = x}}", "{{.lb = x, .ub = x}}"],
    "std::array<std::uint64_t, 2>": ["{{1, 2}}"],
    "std::map<std::string, double>": ['{{"a", 0.5}}'],
    "std::shared_ptr<const void>": ["std::make_shared<int>(1)"],
    "std::map<std::string, std::vector<std::string>>": ['{{"town", {"Bonn", "Ulm"}}}'],
}


def natural(kind, structs, enums, scope=""):
    """Values for a field of this type, or none if the table knows none."""
    kind = kind.removeprefix("const ")
    if match := re.match(r"(?:std::optional|OptionalSize)<(.*)>$", kind):
        return natural(match[1], structs, enums, scope)
    if match := re.match(r"std::vector<(.*)>$", kind):
        return ["{" + ", ".join([value] * 2) + "}" for value in natural(match[1], structs, enums, scope)]
    if kind in NATURAL:
        return NATURAL[kind]
    if match := re.match(r"std::function<(.*?)\((.*)\)>$", kind):
        result = {"void": "", "bool": "return true; ", "double": "return 1.0; "}.get(match[1])
        return ["[](auto&&...) " + (f"-> {match[1]} {{ return {{}}; }}" if result is None else "{ " + result + "}")]
    if kind in enums:
        return [f"{kind}::{enums[kind]}"]
    for name in (scope + kind, kind):
        if name in structs:
            return ["{" + initializer(structs[name], 0, structs, enums) + "}"]
    return []


def initializer(struct, index, structs, enums, value=None, size=None):
    """Designated initializers of field `index`, and of those before and behind it that have no default."""
    parts = []
    scope = struct.name.rpartition("::")[0]
    for i, field in enumerate(struct.fields):
        if i != index and field.default is not None:
            continue
        kind = size if field.type == "Size" else field.type.replace("<Size>", f"<{size}>")
        values = natural(kind, structs, enums, scope and scope + "::")
        parts.append(f".{field.name} = {value if i == index and value else values[0]}")
    return ", ".join(parts)


def program(structs, enums):
    """The program's text, and what is wrong with the table."""
    lines, problems = [], []
    for struct in structs.values():
        scope = struct.name.rpartition("::")[0]
        for size in ["Single", "Pair", "Triple"] if struct.is_template else [None]:
            argument = size or struct.argument
            spelled = struct.name + (f"<{argument}>" if argument else "")
            for i, field in enumerate(struct.fields):
                kind = size if field.type == "Size" else field.type.replace("<Size>", f"<{size}>")
                values = natural(kind, structs, enums, scope and scope + "::")
                if not values:
                    problems.append(f"{spelled}::{field.name}: no natural value of type {kind} in check_options.py")
                    break
                lines += [f"  take<{spelled}>({{{initializer(struct, i, structs, enums, value, size)}}});" for value in values]
    head = ["#include <gradus/gradus.h>", "using namespace gradus;", "template <class Options> void take(Options) {}",
            "void set_all(const int count, const std::int64_t long_count) {",
            '  const std::string name = "name";', "  const Tensor x = ones({2, 2});",
            "  const auto dataset = data::from_tensor_slices(x, x);"]
    return "\n".join(head + lines + ["}", ""]), problems


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2])
    if not compiler or compiler.endswith("NOTFOUND"):
        print("skipped: this compiler is not installed")
        sys.exit(77)
    text, problems = program(*option_structs.read(root))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else pathlib.Path(folder) / "options.cpp")
        source.write_text(text)
        command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-fdiagnostics-color=never",
                   "-I", str(root), str(source)]
        said = subprocess.run(command, capture_output=True, text=True).stderr
    if said:
        problems.append(said)
    print("\n".join(problems) if problems else f"{text.count('take<')} options are set")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
