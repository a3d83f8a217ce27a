"""Docstrings from the comments of the headers: the comment of a name, then its arguments with theirs."""
import re
import textwrap


def in_python(text):
    """A comment in Python's words: {.axis = 1} is axis=1, true is True."""
    text = re.sub(r"\{\.(\w+) = ([^{},]+)\}", r"\1=\2", text)
    return text.replace("`true`", "`True`").replace("`false`", "`False`")


def joined(texts):
    """Different texts, in their order, as paragraphs."""
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def argument_lines(forms):
    """One line for each argument that has a comment."""
    lines, seen = [], set()
    for form in sorted(forms, key=lambda form: -len(form.slots)):
        for slot in form.slots:
            if slot.name in seen or not slot.docs:
                continue
            seen.add(slot.name)
            text = f"{slot.name}: {' '.join(in_python(slot.docs).split())}"
            if not slot.is_required and slot.default not in ("None", ""):
                text += f" (default: {slot.default})"
            lines += textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="        ")
    return lines


def docstring(name, forms, heading="", first=""):
    """The text signature that Python reads, and the docs."""
    longest = max(forms, key=lambda form: len(form.slots))
    is_one = all(form.covers_names(longest) for form in forms)
    shown = longest if is_one else forms[0]
    parts = [in_python(joined([heading] + [form.overload.docs for form in forms]))]
    if not is_one:
        parts.append("Forms:\n" + "\n".join("    " + form.signature(name) for form in forms))
    lines = argument_lines(forms)
    if lines:
        parts.append("Arguments:\n" + "\n".join(lines))
    return shown.signature(name, first) + "\n--\n\n" + "\n\n".join(part for part in parts if part)


def body(text):
    """A docstring without its signature."""
    return text.split("\n--\n\n", 1)[1]
