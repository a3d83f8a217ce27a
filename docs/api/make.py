"""The API reference, by Doxygen from the headers: `make docs`. It fails if a public name has no comment, if a comment
is not understood, or if a name is left out. Without Doxygen it exits with 77, by which ctest knows a skipped test.

    make.py OUT

A subject is a header that gradus.h names; subjects of one room stand together (subjects.dox). Each name lists the
examples that use it.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import examples
import for_doxygen

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def subject_of(path):
    """The group of a header: a title, how it is included, and its first comment."""
    text = (ROOT / path).read_text(encoding="utf-8")
    title = pathlib.PurePosixPath(path).stem.replace("_", " ")
    room = path.split("/")[1]
    comment = for_doxygen.paragraphs(for_doxygen.header_comment(text))
    return (f"/** \\defgroup {for_doxygen.group_of(path)} {title[0].upper() + title[1:]}\n\\ingroup {room}\n"
            f"{comment}\n\nIncluded by \\c gradus/gradus.h; alone: \\c {path} */")


def settings(out, headers, pages):
    text = (HERE / "Doxyfile").read_text(encoding="utf-8")
    inputs = [HERE / "subjects.dox", pages] + [ROOT / header for header in headers]
    quoted = " \\\n  ".join(f'"{path}"' for path in inputs)
    return f"""{text}
INPUT = {quoted}
FILTER_PATTERNS = "*.h=python3 {HERE / 'for_doxygen.py'}"
OUTPUT_DIRECTORY = "{out}"
GENERATE_TAGFILE = "{out / 'names.xml'}"
STRIP_FROM_PATH = "{ROOT}"
EXAMPLE_PATH = "{ROOT / 'examples'}"
EXAMPLE_RECURSIVE = YES
EXAMPLE_PATTERNS = *.cpp *.h
"""


def names_of(header):
    return for_doxygen.Names((ROOT / header).read_text(encoding="utf-8"))


def names_in(tagfile):
    """How often each name stands in the reference, by its path."""
    found = collections.Counter()
    for compound in xml.etree.ElementTree.parse(tagfile).getroot():
        scope = compound.findtext("name")
        if compound.get("kind") in ("class", "struct", "union", "concept"):
            found[without_arguments(scope)] += 1
        if compound.get("kind") in ("class", "struct", "union", "namespace"):
            for member in compound.iter("member"):
                found[f"{without_arguments(scope)}::{member.findtext('name')}".replace(" ", "")] += 1
    return found


def without_arguments(name):
    return re.sub(r"<.*>|\s", "", name)


def left_out(headers, found):
    """Public names that Doxygen did not take in, as happens if it does not understand a declaration."""
    wanted = collections.Counter()
    for header in headers:
        for shown, scope in names_of(header).scopes.values():
            for name in shown.names:
                wanted[f"{scope}::{name}".replace(" ", "")] += shown.kind not in ("namespace", "enumerator")
    return [name for name, count in wanted.items() if found[name] < count]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("doxygen"):
        print("docs: SKIPPED, the API reference is neither made nor checked: there is no doxygen; install the package "
              "`doxygen` (tools/setup.sh docs)", file=sys.stderr)
        sys.exit(77)
    rooms = {header.split("/")[1] for header in for_doxygen.public_headers()}
    if unknown := rooms - set(re.findall(r"\\defgroup (\w+)", (HERE / "subjects.dox").read_text(encoding="utf-8"))):
        sys.exit("docs: subjects.dox has no group for " + ", ".join(sorted(unknown)))
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    headers = [header for header in for_doxygen.public_headers() if names_of(header).shown]
    pages = out / "subjects_of_headers.dox"
    pages.write_text("\n".join([subject_of(header) for header in headers] + examples.pages()) + "\n", encoding="utf-8")
    (out / "Doxyfile").write_text(settings(out, headers, pages), encoding="utf-8")
    if subprocess.run(["doxygen", out / "Doxyfile"], cwd=ROOT).returncode:
        sys.exit("docs: there are findings (above): each public name has a comment, and comments are plain text")
    lost = left_out(headers, names_in(out / "names.xml"))
    if lost:
        sys.exit("docs: Doxygen does not understand the declarations of " + ", ".join(lost))
    print(f"docs: {out / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
