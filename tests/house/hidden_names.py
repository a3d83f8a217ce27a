#!/usr/bin/env python3
"""Fails if the shared library exports what programs must not see, or lacks what they may use: hidden_names.py LIBRARY ARCHIVE

ARCHIVE is the static library of the same objects. Names of namespace gradus that it defines leave the shared library, and the C names
gradus_*; others do not: instances of the standard library's templates, of LLVM's, of protobuf's.
"""
import re
import subprocess
import sys

# The mangled name of something in namespace gradus: a nested name with its qualifiers, before it what the compiler makes for it.
OURS = re.compile(r"gradus_|_Z(?:(?:GV)?Z?|GR|TC|T[VTISHW]|T[hvc]\w*?_)N[KRO]*6gradus")
LOCAL = re.compile(r"_Z\w*12_GLOBAL__N_1")
# A symbol of readelf that other objects see: type, binding, visibility, section, name.
DEFINED = re.compile(r"^ *\d+: \w+ +\w+ +\S+ +(?:GLOBAL|WEAK|UNIQUE) +(?:DEFAULT|PROTECTED) +(?!UND)\S+ ([^\s@]+)", re.M)
FEWEST = 5000


def defined(file, table):
    return set(DEFINED.findall(subprocess.run(["readelf", "--wide", table, file], capture_output=True, text=True, check=True).stdout))


def demangled(names):
    return subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()


def main(library, archive):
    exported, built = defined(library, "--dyn-syms"), defined(archive, "--syms")
    ours = {name for name in built if OURS.match(name) and not LOCAL.match(name)}
    if len(ours) < FEWEST:
        return [f"{archive} defines {len(ours)} names of gradus only: nothing to check"]
    others = sorted(name for name in exported if not OURS.match(name))
    missing = sorted(ours - exported)
    return ([f"{name} is exported: cmake/exported_names.map must leave it out" for name in demangled(others)]
            + [f"{name} is hidden: cmake/exported_names.map must name it" for name in demangled(missing)])


if __name__ == "__main__":
    problems = main(*sys.argv[1:])
    print("\n".join(problems[:100]))
    sys.exit(bool(problems))
