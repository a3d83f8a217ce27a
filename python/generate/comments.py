"""Comments of the headers as the reference documentation reads them: docs/api tells which names are for users, and which
comment belongs to each. So Python and the reference agree by construction."""
import pathlib
import re
import sys


def reader(root):
    """docs/api/for_doxygen.py of the tree at `root`."""
    folder = str(pathlib.Path(root) / "docs/api")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import for_doxygen
    return for_doxygen


class Comments:
    """The public declarations of one header, by the place where each begins."""

    def __init__(self, root, header):
        api = reader(root)
        self.header = header
        text = (pathlib.Path(root) / header).read_text(encoding="utf-8")
        self.names = api.Names(text)
        self.lines_of = api.lines_of
        self.heading = "\n".join(api.header_comment(text)).strip()
        # libclang counts bytes, the reader letters.
        self.by_place = {len(text[:d.start].encode()): d for d in self.names.shown}

    def is_public(self, place):
        return place in self.by_place

    def docs(self, place, name):
        """The comment of `name` in the declaration there; its part, where one comment speaks of several names."""
        shown = self.by_place.get(place)
        if shown is None:
            return ""
        tokens = shown.docs or (self.names.comment_of[shown.start].docs if shown.start in self.names.comment_of else [])
        above = "\n".join(self.lines_of(tokens)).strip()
        behind = " ".join(line.strip() for line in self.lines_of(shown.trailing))
        behind = re.sub(r"^//\s*", "", behind).strip()
        parts = [part.strip() for part in behind.split(";")]
        if len(shown.names) > 1 and len(parts) == len(shown.names) and name in shown.names:
            behind = parts[shown.names.index(name)]
        return "\n".join(text for text in (above, behind) if text)

    def public_names(self):
        """(namespace within gradus, name) of each name that stands in a namespace."""
        for declaration in self.names.shown:
            if declaration.start not in self.names.scopes:
                continue  # a value of an enum
            scope = self.names.scopes[declaration.start][1].removeprefix("gradus").removeprefix("::")
            if not scope or scope in NAMESPACES:
                for name in declaration.names:
                    yield scope, name


# Namespaces whose names are for users; others within gradus are classes.
NAMESPACES = {"random", "data", "initializers", "regularizers", "constraints", "merging", "onnx", "dlpack", "dimension"}
