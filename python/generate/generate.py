"""Writes the sources of the binding, and stubs, from the public headers.

    generate.py --root ROOT --out FOLDER [--parts N] [--resource-dir DIR]

FOLDER gets generated.cpp with bind_generated(), generated_0.cpp ... of about equal times to compile, generated_names.h
for all of them, names.json (every name that is bound, for tests) and stubs/*.pyi. A file whose text stays is not
written, so that nothing is compiled that did not change.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import classes
import functions
import sources
import stubs
from conversions import Conversions
from forms import Maker
from headers import HeaderError, Reader


class Binding:
    """All that is bound."""

    def __init__(self, root, resource_dir=None):
        self.library = Reader(root, resource_dir).read()
        self.conversions = Conversions(self.library)
        maker = Maker(self.conversions)
        self.functions, self.left_out = functions.bound_functions(self.library, maker)
        self.classes, left_out = classes.bound_classes(self.library, maker)
        self.left_out |= left_out
        for each in self.functions:
            self.left_out |= {f"{each.full_name}.{field}": reason for form in each.forms for field, reason in form.left_out}
        for each in self.classes:
            self.left_out |= {f"{each.name}.{field}": reason for form in each.forms for field, reason in form.left_out}

    def aliases(self):
        """Other names of bound classes."""
        bound = {each.name for each in self.classes}
        return {name: target for name, target in self.library.aliases.items() if target in bound}

    def all_forms(self):
        for each in self.functions:
            yield from each.forms
        for each in self.classes:
            yield from each.forms
            for method in each.methods:
                yield from method.forms

    def tuples(self):
        """The structs of results that are named tuples."""
        used = {}
        for form in self.all_forms():
            for type_ in reversed(self.conversions.tuples_of(form.overload.result)):
                used[type_] = self.library.structs[type_]
        return list(used.values())

    def enums(self):
        """The enums of arguments."""
        used = {slot.type.removeprefix("std::optional<").removesuffix(">") for form in self.all_forms() for slot in form.slots}
        return [enum for full_name, enum in self.library.enums.items() if full_name in used]

    def options(self):
        """Types of the structs of options that are keyword arguments."""
        overloads = [form.overload for form in self.all_forms()]
        overloads += [o for each in self.functions for o in self.library.functions[each.full_name].overloads]
        return {parameter.type for overload in overloads for parameter in overload.parameters
                if parameter.fields is not None}

    def bound_names(self):
        """Every public name that Python has, by its full name."""
        names = {each.full_name for each in self.functions} | {each.name for each in self.classes}
        names |= {struct.full_name.removeprefix("gradus::") for struct in self.tuples()}
        names |= {enum.full_name.removeprefix("gradus::") for enum in self.enums()}
        names |= set(self.aliases())
        for option in self.options():
            name = option.removeprefix("gradus::").split("<")[0]
            names |= {name} | {alias for alias, target in self.library.aliases.items()
                               if f"gradus::{target}" == option}
        return names


def resource_dir_of_clang():
    """The headers of the compiler's own that libclang's package lacks: those of a clang, else those of the C++ compiler."""
    for command in (["clang-19", "-print-resource-dir"], ["clang", "-print-resource-dir"]):
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            continue
    found = sorted(pathlib.Path("/usr/lib").glob("llvm-*/lib/clang/*/include/stddef.h"))
    return str(found[-1].parents[1]) if found else None


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Writes the sources of the binding from the public headers.")
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--resource-dir")
    given = parser.parse_args()
    try:
        binding = Binding(given.root, given.resource_dir or resource_dir_of_clang())
    except HeaderError as error:
        sys.exit(f"generate.py: {error}")
    for name, text in sources.files(binding, given.parts).items():
        write(given.out / name, text)
    for name, text in stubs.files(binding).items():
        write(given.out / "stubs" / name, text)
    facts = {"bound": sorted(binding.bound_names()), "left_out": binding.left_out, "public": binding.library.names,
             "functions": {f.full_name: {"module": f.module, "forms": [[(s.name, s.type, s.is_required) for s in form.slots]
                                                                        for form in f.forms]} for f in binding.functions}}
    write(given.out / "names.json", json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
