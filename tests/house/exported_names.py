#!/usr/bin/env python3
"""Fails if the library exports a name that tests alone use: exported_names.py LIBRARY ROOT

A name counts as used if it stands in a header that gradus/gradus.h includes, or in more places of gradus/, apps/, bench/,
examples/ and python/ than its declaration and its definition. Names that were made for tests belong into tests/.
"""
import collections
import pathlib
import re
import subprocess
import sys

# Views that tests alone have of the inside of a running program: numbers, and tables that the library itself uses.
OBSERVERS = {
    "executor_switches", "graph_passes", "kernel_choices",  # the tables of the compiler's passes
    "placed_compilations", "program_cache_use", "set_program_cache_limit",  # programs that are kept
    "reserved_bytes",  # of the heap
    "steps_kept", "unproven",  # what a desk of steps, and a listener, hold
}
USERS = ("gradus", "apps", "bench", "examples", "python")
TESTS = ("tests", "fuzz")


def words_of(text):
    without = re.sub(r"//[^\n]*", "", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text))
    return collections.Counter(re.findall(r"[A-Za-z_]\w*", without))


def public_headers(root):
    """gradus/gradus.h and what it includes, directly or not."""
    seen, left = set(), ["gradus/gradus.h"]
    while left:
        header = left.pop()
        if header not in seen:
            seen.add(header)
            left += re.findall(r'#include "(gradus/[^"]+)"', (root / header).read_text())
    return {root / header for header in seen}


def exported(library):
    """The last parts of the names of functions and objects of namespace gradus, templates and operators apart."""
    lines = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = set()
    for line in lines.splitlines():
        match = re.match(r"\S+ [A-Z] gradus::(?:\w+::)*(\w+)(?:\[abi:cxx11\])?(?:\(|$)", line)
        if match and "(anonymous namespace)" not in line:
            names.add(match.group(1))
    return names


def used_by_tests_alone(names, public, declared, users, tests):
    """`public`, `declared`, `users`, `tests`: how often each word stands in public headers, in all headers of the library, in
    sources (by their paths without endings), and in tests."""
    for name in sorted(names & set(declared)):
        places = [stem for stem, words in users.items() if name in words]
        count = sum(users[stem][name] for stem in places)
        if name in tests and name not in public and len(places) <= 1 and count <= 2:
            yield name


def main(library, root):
    sources = {path: words_of(path.read_text()) for folder in USERS + TESTS for path in (root / folder).rglob("*")
               if path.suffix in (".h", ".cpp")}
    users, tests = collections.defaultdict(collections.Counter), collections.Counter()
    for path, words in sources.items():
        if path.relative_to(root).parts[0] in TESTS:
            tests += words
        else:
            users[path.with_suffix("")] += words
    public = sum((sources[header] for header in public_headers(root)), collections.Counter())
    names = exported(library)
    if len(names) < 1000:
        return [f"{library} exports {len(names)} names of gradus only: nothing to check"]
    declared = sum((words for path, words in sources.items() if path.suffix == ".h" and root / "gradus" in path.parents),
                   collections.Counter())
    found = set(used_by_tests_alone(names, public, declared, users, tests))
    return ([f"{name} is exported, and used by tests alone: move it to tests/" for name in sorted(found - OBSERVERS)]
            + [f"{name} is no longer exported for tests alone: remove it from OBSERVERS" for name in sorted(OBSERVERS - found)])


if __name__ == "__main__":
    problems = main(sys.argv[1], pathlib.Path(sys.argv[2]))
    print("\n".join(problems))
    sys.exit(bool(problems))
