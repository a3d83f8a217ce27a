"""The option structs of the public headers, read from their text: fields in order, each with its type and its default.

Public headers are those that gradus.h leads to. What stands in a namespace `detail` is left out, and so are fields that
are never given (detail::No...).
"""
import pathlib
import re
from dataclasses import dataclass, field

STRUCT = re.compile(r"(template <(?:class Size|\w+ X = \w+)> )?(?:struct|class) (\w+)(?: final)?(?: : [^{;]+)? \{")
ENUM = re.compile(r"enum class (\w+)[^{;]*\{\s*(\w+)")
NEVER_SET = re.compile(r"detail::(No\w+|Given)$")


@dataclass
class Field:
    type: str
    name: str
    default: str | None


@dataclass
class Struct:
    name: str
    is_template: bool  # by the sizes of windows
    fields: list[Field] = field(default_factory=list)
    argument: str | None = None  # of another template: its default


def public_headers(root):
    found, next_ones = [], ["gradus/gradus.h"]
    while next_ones:
        header = next_ones.pop()
        if header not in found:
            found.append(header)
            next_ones += re.findall(r'#include "(gradus/[^"]+)"', (root / header).read_text())
    return [root / header for header in sorted(found)]


def without_comments(text):
    text = text.replace("','", "comma")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def without_detail(text):
    """The text without namespaces `detail`."""
    while (match := re.search(r"namespace detail(?:::inline rooms(?:::\w+)*)? \{", text)):
        text = text[:match.start()] + text[end_of_braces(text, match.end()):]
    return text


def end_of_braces(text, start):
    """The place behind the brace that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError("braces do not match")


def split_at_top(text, separator):
    """The parts of `text` between separators that are in no brackets."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += 1 if letter in "({[<" else -1 if letter in ")}]>" else 0
        if letter == separator and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    return parts + [text[begin:]]


def declarations(body):
    """The declarations in a struct's body, without the bodies of functions."""
    found, begin, place = [], 0, 0
    while place < len(body):
        if body[place] == "{":
            end = end_of_braces(body, place + 1)
            before = body[begin:place].rstrip()
            if re.search(r"\)( const| noexcept| override)*$", before):  # of a function
                begin = place = end
                continue
            place = end
        elif body[place] == ";":
            found.append(body[begin:place].strip())
            place += 1
            begin = place
        else:
            place += 1
    return found


def fields_in(body):
    found = []
    for declaration in declarations(body):
        words = " ".join(declaration.split())
        if not words or re.match(r"(static|using|friend|template|explicit|enum|struct|class|bool operator|operator)\b", words):
            continue
        head = re.sub(r"<[^=]*>", "<>", words.split("=")[0])
        if "(" in head or "operator" in words.split("=")[0]:
            continue
        parts = [part.strip() for part in split_at_top(words, ",")]
        match = re.match(r"((?:const )?[\w:]+(?:<.*?>)?) (\w+)(?: = (.*))?$", parts[0])
        if not match:
            continue
        kind = match[1]
        for text in [parts[0][len(kind):].strip()] + parts[1:]:
            name, _, default = text.partition("=")
            if not NEVER_SET.match(kind):
                found.append(Field(kind, name.strip(), default.strip() or None))
    return found


def namespace_of(text, place):
    """The namespaces around a place, but for gradus: "random::"."""
    around = [match[1] for match in re.finditer(r"namespace ([\w:]+) \{", text[:place])
              if end_of_braces(text, match.end()) > place]
    return "".join(name + "::" for name in "::".join(around).split("::")[1:])


def read(root):
    """{name: Struct} of the option structs, and {name: first value} of enums."""
    structs, enums = {}, {}
    for header in public_headers(root):
        text = without_detail(without_comments(header.read_text()))
        enums |= {match[1]: match[2] for match in ENUM.finditer(text)}
        for match in STRUCT.finditer(text):
            if not re.search(r"Options?(Of)?$", match[2]):
                continue
            body = text[match.end():end_of_braces(text, match.end()) - 1]
            if "private:" in body or re.search(r"\b%s\(" % match[2], body):
                continue  # a class with constructors
            name = namespace_of(text, match.start()) + match[2]
            parameter = re.search(r"(\w+) = (\w+)>", match[1] or "")
            fields = fields_in(body)
            for each in fields if parameter else []:
                each.type = re.sub(rf"\b{parameter[1]}\b", parameter[2], each.type)
            structs[name] = Struct(name, bool(match[1]) and not parameter, fields, parameter and parameter[2])
    return structs, enums
