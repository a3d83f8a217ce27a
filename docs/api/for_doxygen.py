"""The headers as Doxygen reads them: its markup is made here from comments as this house writes them.

    for_doxygen.py HEADER       prints the header for Doxygen, which calls it so (INPUT_FILTER)
    for_doxygen.py --check      names that gradus.h offers and that have no comment, one a line; exit 1 if there is any

- The first comment of a header is the text of its group, and its names are in that group.
- `// text` behind a field or an enumerator is about it. In `int a, b;  // of a; of b` each name gets its part.
- A function without a comment has that of the function of its name above it; a constructor is said to be one.
- What is not for users is blanked: `detail`, private members, what follows "For the rooms of the library", structs of
  ops, and what speaks for itself: tables of allowed values, deleted functions, and special members, friends, overrides
  and parts of iterators without a comment.

Lines stay where they are, so that Doxygen's warnings name the right ones.
"""
import functools
import pathlib
import re
import sys

import declarations

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SPECIAL = re.compile(r"[\\@<>&#%]")
OF_ITERATORS = {"begin", "end", "operator*", "operator->", "operator++", "operator==", "operator!=", "value_type",
                "difference_type", "reference", "pointer", "iterator_category"}


def public_headers():
    """Those that gradus.h names, in its order."""
    return re.findall(r'^#include "(gradus/[^"]+)"', (ROOT / "gradus/gradus.h").read_text(encoding="utf-8"), re.M)


@functools.cache
def namespaces_with_text():
    """Those that subjects.dox describes."""
    return re.findall(r"\\namespace (\S+)", (HERE / "subjects.dox").read_text(encoding="utf-8"))


# ---------------------------------------------------------------- which names are for users

class Names:
    """The names of a header that are for users, each with where its comment is; and all else, which is hidden."""

    def __init__(self, text):
        self.text = text
        self.shown, self.hidden, self.undocumented = [], [], []
        self.scopes = {}  # by the place of what is shown: it, and the path of what it stands in
        self.comment_of = {}  # by the place of a declaration: the one whose comment it takes, or itself
        self.constructors = set()  # where those begin
        self.namespaces = []
        for declaration in declarations.read(text):
            if declaration.kind == "namespace" and declaration.is_public and declaration.name.startswith("gradus"):
                self.namespaces.append(declaration)
                self.look_into(declaration, declaration.name)
            else:
                self.hidden.append(declaration)

    def line(self, declaration):
        return self.text.count("\n", 0, declaration.start) + 1

    def look_into(self, scope, path):
        owner = scope.name if scope.kind == "class" else ""
        signatures = set()
        documented = {}  # by name: the function or class above that has a comment
        for member in scope.children:
            if self.is_hidden(member, owner, documented):
                self.hidden.append(member)
                if member.docs and member.name and (self.is_deleted(member) or member.kind == "other"):
                    # It stands before the function that is there, or announces a class.
                    documented.setdefault(member.name, member)
                continue
            signature = self.signature(member)
            if member.kind == "function" and not member.docs and signature in signatures:
                self.hidden.append(member)  # its definition, below
                continue
            signatures.add(signature)
            self.shown.append(member)
            self.scopes[member.start] = (member, path)
            if member.name == owner:
                self.constructors.add(member.start)
            above = documented.get(member.name) if member.kind == "function" else None
            if member.docs:
                documented[member.name] = member
            elif above and not member.trailing:
                self.comment_of[member.start] = above
            elif not member.trailing and member.start not in self.constructors and (
                    member.kind != "namespace" or f"{path}::{member.name}" not in namespaces_with_text()):
                self.undocumented.append(member)
            if member.kind in ("namespace", "class"):
                self.look_into(member, f"{path}::{member.name}")
            elif member.kind == "enum":
                self.look_into_enum(member)

    def look_into_enum(self, enum):
        """The comment of an enum may speak for all of its values; otherwise each has one."""
        has_none = [e for e in enum.children if not (e.docs or e.trailing)]
        self.shown += enum.children
        if not enum.docs or len(has_none) < len(enum.children):
            self.undocumented += has_none

    def is_hidden(self, member, owner, documented):
        if not member.is_public or member.kind == "other" or member.name.endswith("_") or self.is_deleted(member):
            return True
        if member.kind == "class":
            return self.is_op(member) or (not member.docs and self.speaks_for_itself(member, documented))
        if member.name == "ranges" and owner:
            return True
        if member.docs or member.trailing:
            return False
        if member.kind == "function":
            return self.is_special(member, owner) or member.says("friend", "override") or (
                owner and self.is_of_iterator(member, owner))
        return member.kind == "alias" and member.name in OF_ITERATORS

    @staticmethod
    def is_op(member):
        """Structs of ops have rules for the compiler; users call functions."""
        return any(c.kind == "variable" and c.name == "name" and c.says("static") for c in member.children)

    @staticmethod
    def speaks_for_itself(member, documented):
        """A specialization of a class above, or an iterator."""
        return member.name in documented or member.name.lower() == "iterator"

    def is_special(self, member, owner):
        """What C++ makes by itself: destructors, assignments, constructors that copy or move."""
        text = self.text[member.start:member.end]
        return member.name in ("operator=", "~" + owner) or bool(re.search(r"=\s*default\s*;$", text)) or (
            member.name == owner and bool(re.search(rf"\b{owner}\((const )?{owner}\s*&&?\s*\w*\)", text)))

    @staticmethod
    def is_of_iterator(member, owner):
        return member.name in ("begin", "end") or (owner.lower().endswith("iterator") and member.name in OF_ITERATORS)

    def signature(self, member):
        """Of a function: name and parameters without default values."""
        if not member.result:
            return member.start
        declared = self.text[member.result[0][1]:member.result[1]]
        return re.sub(r"\s|=[^,)]*", "", declared) + (" const" if member.says("const") else "")

    def is_deleted(self, member):
        return bool(re.search(r"=\s*delete\s*;$", self.text[member.start:member.end]))


# ---------------------------------------------------------------- comments as Doxygen wants them

def lines_of(tokens):
    """The text of a comment, without its slashes."""
    return [re.sub(r"^///? ?", "", token.text) for token in tokens]


def escaped(text):
    """As Doxygen shows it letter by letter; `code` as code."""
    parts = [SPECIAL.sub(lambda m: "\\" + m[0], part).replace("::", "\\::").replace("*/", "* /").replace("/*", "/ *")
             for part in re.split(r"`([^`]*)`", text)]
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))


def paragraphs(lines):
    """The lines with blocks that are set in by two blanks, behind an empty line, as code. One line may be added."""
    out, is_code = [], False
    for line, before in zip(lines, [""] + lines):
        is_set_in = line.startswith("  ") and (is_code or not before.strip())
        if is_set_in and not is_code:
            out[-1:] = ["\\code{.cpp}"]
        elif is_code and not is_set_in:
            out.append("\\endcode " + line if line.strip() else "\\endcode")
            is_code = False
            continue
        is_code = is_set_in
        out.append(line)
    joined = "\n".join(out) + ("\n\\endcode" if is_code else "")
    blocks = re.split(r"(\\code\{\.cpp\}.*?\\endcode)", joined, flags=re.S)
    return "".join(block if block.startswith("\\code") else escaped(block) for block in blocks)


def header_comment(text):
    """The lines of a header's first comment."""
    lines = text.split("\n")
    count = next((k for k, line in enumerate(lines) if not line.startswith("///")), len(lines))
    return [line[3:].removeprefix(" ") for line in lines[:count]]


def in_one_line(tokens):
    return escaped(" ".join(line.strip() for line in lines_of(tokens)))


# ---------------------------------------------------------------- the header with both

class Page:
    """A header with its changes, each a place and what stands there instead."""

    def __init__(self, path, text):
        self.path, self.text, self.names = path, text, Names(text)
        self.changes = []

    def render(self):
        for hidden in self.names.hidden:
            self.blank(hidden)
        for shown in self.names.shown:
            self.comment(shown)
        group = group_of(self.path)
        for namespace in self.names.namespaces + [n for n in self.names.shown if n.kind == "namespace"]:
            self.changes.append((namespace.body[0], namespace.body[0], f" /** \\addtogroup {group} */ /** \\{{ */"))
            self.changes.append((namespace.body[1], namespace.body[1], "/** \\} */ "))
        out, last = [], 0
        first = self.text.find("#pragma once")
        out.append("\n" * self.text.count("\n", 0, first))  # the first comment is the group's
        last = first
        for start, end, instead in sorted(self.changes, key=lambda change: change[:2]):
            if start < last:
                continue  # within what is blanked
            out += [self.text[last:start], instead]
            last = end
        return "".join(out + [self.text[last:]])

    def blank(self, declaration):
        start = declaration.docs[0].start if declaration.docs else declaration.start
        end = declaration.trailing[-1].end if declaration.trailing else declaration.end
        self.changes.append((start, end, "\n" * self.text.count("\n", start, end)))

    def comment(self, shown):
        """The changes that give a declaration its comment."""
        if shown.docs:
            start, end = shown.docs[0].start, shown.docs[-1].end
            text = paragraphs(lines_of(shown.docs))
            self.changes.append((start, end, "/** " + text + " */"))
        taken = self.names.comment_of.get(shown.start)
        if taken:
            self.changes.append((shown.start, shown.start, f"/** {in_one_line(taken.docs)} */ "))
        elif shown.start in self.names.constructors and not shown.docs and not shown.trailing:
            self.changes.append((shown.start, shown.start, f"/** Makes a %{shown.name}. */ "))
        if shown.result and "(" in self.text[slice(*shown.result[0])]:
            self.move_result(shown)
        if shown.kind == "variable" and len(shown.names) > 1:
            self.split(shown)
        elif shown.trailing:
            self.say_behind(shown)

    def move_result(self, shown):
        """`auto f(...) -> T` for `T f(...)`: Doxygen takes a bracket in T for that of the parameters."""
        (start, end), past_parameters = shown.result
        self.changes.append((start, end, "auto "))
        self.changes.append((past_parameters, past_parameters, " -> " + self.text[start:end].strip()))

    def say_behind(self, shown):
        start, end = shown.trailing[0].start, shown.trailing[-1].end
        lines = "\n" * self.text.count("\n", start, end)
        if shown.kind == "function":  # Doxygen takes what stands behind a body for the next one's
            self.changes.append((shown.start, shown.start, f"/** {in_one_line(shown.trailing)} */ "))
            self.changes.append((start, end, lines))
        else:
            self.changes.append((start, end, f"/**< {in_one_line(shown.trailing)} */{lines}"))

    def split(self, shown):
        """`int a, b;  // of a; of b` as two declarations with a comment each."""
        count = len(shown.names)
        behind = " ".join(line.strip() for line in lines_of(shown.trailing))
        parts = [part.strip() for part in behind.split(";")]
        if len(parts) != count:
            parts = [behind] * count
        above = in_one_line(shown.docs) if shown.docs else ""
        kind = self.text[shown.start:shown.declarators[0][0]]
        made = [f"/** {above} {escaped(part)} */ {kind}{self.text[start:end]};"
                for part, (start, end) in zip(parts, shown.declarators)]
        start = shown.docs[0].start if shown.docs else shown.start
        end = shown.trailing[-1].end if shown.trailing else shown.end
        self.changes = [change for change in self.changes if not start <= change[0] < end]
        whole = " ".join(made).replace("\n", " ")
        self.changes.append((start, end, whole + "\n" * self.text.count("\n", start, end)))


def group_of(path):
    return str(path).removeprefix("gradus/").removesuffix(".h").replace("/", "_")


def check():
    found = []
    for header in public_headers():
        names = Names((ROOT / header).read_text(encoding="utf-8"))
        found += [f"{header}:{names.line(d)}: {', '.join(d.names)} has no comment: say in a sentence what it is (///)"
                  for d in names.undocumented]
    print("\n".join(found) if found else "no findings")
    return 1 if found else 0


def main():
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    path = pathlib.Path(sys.argv[1]).resolve()
    sys.stdout.write(Page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")).render())


if __name__ == "__main__":
    main()
