"""The examples as pages of the reference."""
import pathlib

import for_doxygen

ROOT = pathlib.Path(__file__).resolve().parents[2]


def programs():
    return sorted((ROOT / "examples").glob("*.cpp")) + sorted((ROOT / "examples/gallery").rglob("*.cpp"))


def first_comment(text):
    lines = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        lines.append(line.lstrip("/").strip())
    return " ".join(lines)


def pages():
    """A page for each. Doxygen finds the names that it uses, and lists it beside them."""
    return [f"/** \\example {path.relative_to(ROOT / 'examples').as_posix()}\n"
            f"{for_doxygen.escaped(first_comment(path.read_text(encoding='utf-8')))} */" for path in programs()]
