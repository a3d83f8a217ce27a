"""Every function and layer of the public headers that takes an axis by its place takes it by its name, too, {.axis = 1}.
Prints what does not; exit 1 if anything does not.

    check_axes.py ROOT
"""
import pathlib
import re
import sys

AXIS = re.compile(r"(?:\bint|std::optional<int>|std::vector<int>&?) (?:axis|seq_axis)\b")
DECLARATION = re.compile(r"^ *(?:template <class = void>\s+)?(?:explicit |inline |static |constexpr )*(?:[\w:<>]+&? )?(\w+)\(([^;{]*?)\)(?: const)?"
                         r"(?: : [^{]*)?(?:;| \{)", re.M)
STRUCT_WITH_AXIS = re.compile(r"struct (\w+) \{\n(?:(?!\n *\};).)*?\b(?:axis|seq_axis)\b", re.S)
NOT_PUBLIC = "// For the rooms of the library."


def public_headers(root):
    """Those that gradus.h names, and those that they name, as users see them."""
    seen, waiting = {}, ["gradus/gradus.h"]
    while waiting:
        name = waiting.pop()
        if name in seen or not (root / name).exists():
            continue
        text = (root / name).read_text()
        seen[name] = text.split(NOT_PUBLIC)[0]
        if name == "gradus/gradus.h":
            waiting += re.findall(r'#include "(gradus/(?:ops|nn)/[^"]+)"', text)
    return seen


def problems(headers):
    options = {"NamedAxis", "NamedAxes"}
    for text in headers.values():
        options.update(STRUCT_WITH_AXIS.findall(text))
    by_place, by_name = {}, set()
    for path, text in headers.items():
        code = re.sub(r"//[^\n]*", "", text)
        code = re.sub(r"namespace detail(?:::inline rooms)? \{.*?\n\}", "", code, flags=re.S)
        for name, parameters in DECLARATION.findall(code):
            if AXIS.search(parameters):
                by_place[name] = path
            last = parameters.rsplit(",", 1)[-1]
            if any(re.search(rf"\b{option}\b", last) for option in options):
                by_name.add(name)
    for name in sorted(set(by_place) - by_name):
        yield f"{by_place[name]}: {name} takes an axis by its place alone: add an overload (gradus/ops/named_axis.h)"


def main():
    headers = public_headers(pathlib.Path(sys.argv[1]))
    found = list(problems(headers))
    taking = sum(len(AXIS.findall(text)) for text in headers.values())
    if taking < 50:
        found.append(f"only {taking} functions with an axis are found: this check reads headers wrong")
    print("\n".join(found) if found else "every axis has its name")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
