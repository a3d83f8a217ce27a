"""The names of the library, in two readings of its headers. Prints what is wrong; exit 1 if anything is.

    check_names.py ROOT [COMPILER]

1. `using namespace gradus;` brings in all that gradus.h declares in gradus::, also by the headers that it leads to. Each
   of these names is documented (docs/api) or is in LEFT with its reason: what is internal is in gradus::detail. Names
   that the rooms share are in gradus::detail::rooms, and gradus/base/rooms.h, which no such header includes, brings
   them into gradus:: for the rooms.
   With a compiler, a program with types of its own by such names is compiled.
2. Optimizers, losses and metrics of the library can be made from their names (gradus/train/named_parts), or MADE_BY_HAND
   says why not.
"""
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^#include "(gradus/[^"]+)"', re.M)

# Names that stay in gradus:: without a page of the reference, each with its reason.
LEFT = {
    "Allowed": "rows of the tables of some 60 option structs: Allowed::positive(\"epsilon\")",
    "conv": "deleted: the compiler's error names conv1d, conv2d, conv3d",
}
# Options that have no default, or a y or a prediction of another form.
MADE_BY_HAND = {
    "PerExampleLoss": "of any function",
    "Dice": "over all examples of a batch: of masks of pixels",
    "Tversky": "as Dice",
    "Circle": "of embeddings, whose columns are similarities",
    "CTC": "of sequences of labels",
    "CategoricalAccuracy": "of one-hot rows: sparse_categorical_accuracy is the same",
    "TopKCategoricalAccuracy": "of one-hot rows: sparse_top_k_categorical_accuracy is the same",
    "Accuracy": "of predicted classes",
    "TruePositives": "of probabilities, which a model of the command does not give",
    "TrueNegatives": "of probabilities", "FalsePositives": "of probabilities", "FalseNegatives": "of probabilities",
    "Precision": "of probabilities", "Recall": "of probabilities", "AUC": "of probabilities",
    "BinaryIoU": "of probabilities", "IoU": "needs the number of classes", "MeanIoU": "needs the number of classes",
    "FBetaScore": "needs the number of classes", "F1Score": "needs the number of classes",
    "SensitivityAtSpecificity": "needs a bound", "SpecificityAtSensitivity": "needs a bound",
    "PrecisionAtRecall": "needs a bound", "RecallAtPrecision": "needs a bound",
}


def headers_behind(root, header="gradus/gradus.h"):
    """All headers that `header` leads to."""
    seen, left = set(), [header]
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            left += INCLUDE.findall((root / path).read_text(encoding="utf-8"))
    return sorted(seen)


def is_announced(text, member):
    """True for `class Stage;`, of a class that no comment announces here."""
    return bool(re.fullmatch(r"(?:class|struct) \w+;", text[member.start:member.end]))


def names_in(root, for_doxygen, declarations):
    """Names of gradus:: with the header where each first stands: those that are documented, and all."""
    documented, declared = set(), {}
    public = set(for_doxygen.public_headers())
    for path in headers_behind(root):
        text = (root / path).read_text(encoding="utf-8")
        if path in public:
            scopes = for_doxygen.Names(text).scopes.values()
            documented.update(name for shown, scope in scopes if scope == "gradus" for name in shown.names)
        for scope in declarations.read(text):
            if scope.kind == "namespace" and scope.name == "gradus":
                for member in scope.children:
                    # Definitions of members, `Tensor Region::f()`, and operators bring no name.
                    if member.kind == "other" and not is_announced(text, member) or member.name.startswith("operator"):
                        continue
                    for name in member.names:
                        declared.setdefault(name, path)
    return documented, declared


def check_namespace(root):
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "docs/api"))
    import declarations
    import for_doxygen
    documented, declared = names_in(root, for_doxygen, declarations)
    if "gradus/base/rooms.h" in headers_behind(root):
        yield "gradus/base/rooms.h: gradus.h leads to it, so programs see the names of the rooms: write detail::Node there"
    for name, path in sorted(declared.items(), key=lambda item: item[::-1]):
        if name not in documented | set(LEFT) and not name.startswith("detail"):
            yield (f"{path}: {name} is in gradus:: and has no documentation, so it is in the way of a program's own "
                   f"{name}: put it into gradus::detail (gradus/base/rooms.h), or say what it is (///)")
    for name in sorted(set(LEFT) - (set(declared) - documented)):
        yield f"tests/house/check_names.py: {name} is in LEFT, but no longer in the way: take it out"


# Names that programs have, and that the library has within detail.
OWN_NAMES = ("Copies Views Calls Controls Emits Reduces Indexes Aliases Expands Inlines Unary Binary Ternary IsOp HasName "
             "Stage Reading BatchReaders PipelineChanges Task Examined Setting Slot Shared Updated StepNumbers number "
             "Node Layer Context Buffer Region View Trace Structure Pending Training Ref Inputs Signature Body Setup Specs "
             "memory fitting mix notice extent fill match difference apply replay capture").split()


def check_program(root, compiler):
    """A program that writes `using namespace gradus;`, as README does, and has these types."""
    types = "".join(f"struct {name} {{}};\n" for name in OWN_NAMES)
    uses = "".join(f"  {name} a_{name};\n  (void)a_{name};\n" for name in OWN_NAMES)
    program = f'#include "gradus/gradus.h"\nusing namespace gradus;\n{types}int main() {{\n{uses}}}\n'
    made = subprocess.run([*compiler.split(), "-std=c++20", "-fsyntax-only", f"-I{root}", "-x", "c++", "-"],
                          input=program, capture_output=True, text=True)
    if made.returncode:
        errors = [line for line in made.stderr.splitlines() if "error" in line]
        yield "a program with types of its own does not compile: " + "; ".join(errors[:5])


def check_named_parts(root):
    made = (root / "gradus/train/named_parts.h").read_text() + (root / "gradus/train/named_parts.cpp").read_text()
    for folder, base in (("optim", "Optimizer"), ("nn", "LossFunction"), ("nn", "Metric")):
        for path in sorted((root / "gradus" / folder).glob("*.h")):
            for name in re.findall(rf"^struct (\w+) : {base} \{{", path.read_text(encoding="utf-8"), re.M):
                function = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
                if name not in MADE_BY_HAND and not re.search(rf"\b(?:{name}|{function})\b", made):
                    yield (f"{path.relative_to(root)}: {name} cannot be made from its name: add it to "
                           "gradus/train/named_parts, or to MADE_BY_HAND of tests/house/check_names.py")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = [*check_namespace(root), *check_named_parts(root)]
    if len(sys.argv) > 2:
        found += check_program(root, sys.argv[2])
    print("\n".join(found) if found else "no findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
