"""The declarations of a header, with the comments that belong to each name: a reader of the part of C++ that headers
are written in. It knows no types. It finds where declarations begin and end, and which are not for users.
"""
import dataclasses
import re

TOKEN = re.compile(r"""(?P<doc>///[^\n]*)|(?P<comment>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<pre>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<text>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')|(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[\w.']|[eEpP][+-])*)|(?P<sign>::|->|\[\[|\]\]|[^\s\w])""", re.X | re.S | re.M)
# A comment that begins what users need not know; it holds to the end of the scope, or to `public:` and the like.
FOR_ROOMS = re.compile(r"//\s*For (?:the rooms of the library|backends)\b")
COMMENTS = {"doc", "comment", "block"}
KEYS = {"class", "struct", "union", "enum"}
NO_PARAMETERS_AFTER = {"requires", "decltype", "alignas", "explicit", "noexcept", "sizeof"}
OPENING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass
class Declaration:
    """A name, or the several names of `int a, b;`."""
    kind: str  # namespace, class, enum, enumerator, function, variable, alias, concept, other
    names: list
    start: int  # of its first token, without comments
    end: int  # past its `;`, or the `}` of its body
    docs: list = dataclasses.field(default_factory=list)  # the tokens of the /// lines above
    trailing: list = dataclasses.field(default_factory=list)  # those of the // comment behind it
    is_public: bool = True
    children: list = dataclasses.field(default_factory=list)
    body: tuple = ()  # within the braces of a namespace, class or enum: start and end
    declarators: list = dataclasses.field(default_factory=list)  # of a variable: (start, end) of each
    tokens: list = dataclasses.field(default_factory=list)  # without comments, bodies and what stands in brackets
    result: tuple = ()  # of a function: where its type and its parameters begin and end, as (start, end), end

    @property
    def name(self):
        return self.names[0] if self.names else ""

    def says(self, *words):
        return any(token.text in words for token in self.tokens)


def tokens_of(text):
    return [Token(match.lastgroup, match[0], match.start(), match.end()) for match in TOKEN.finditer(text)]


class Reader:
    """Recursive descent over the tokens of one header."""

    def __init__(self, text):
        self.text, self.tokens, self.at = text, tokens_of(text), 0
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def line(self, place):
        return self.text.count("\n", 0, place) + 1

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def scope(self, is_public, is_class=False, default_access=True, class_name=""):
        """The declarations up to the closing brace, which is left."""
        found, docs, access, hidden = [], [], default_access, False
        while (token := self.peek()) and token.text != "}":
            if token.kind == "doc":
                if docs and self.line(docs[-1].start) + 1 != self.line(token.start):
                    docs = []
                docs.append(token)
                self.at += 1
            elif token.kind in ("comment", "block", "pre"):
                hidden = hidden or bool(FOR_ROOMS.match(token.text))
                docs = []
                self.at += 1
            elif is_class and token.text in ("public", "protected", "private") and self.tokens[self.at + 1].text == ":":
                access, hidden, docs = token.text != "private", False, []
                self.at += 2
            elif token.text == ";":
                self.at += 1
            else:
                declaration = self.declaration(is_public and access and not hidden, class_name)
                declaration.docs, docs = docs, []
                declaration.trailing = self.trailing(declaration.end)
                found.append(declaration)
        return found

    def trailing(self, end):
        """A // comment on the line that ends at `end`, and the lines below it that go on in its column."""
        found = []
        while (token := self.peek()) and token.kind == "comment":
            before = found[-1] if found else None
            if before is None:
                is_behind = "\n" not in self.text[end:token.start]
            else:
                between = self.text[before.end:token.start]
                is_behind = between.count("\n") == 1 and self.column(before) == self.column(token)
            if not is_behind or FOR_ROOMS.match(token.text):
                break
            found.append(token)
            self.at += 1
        return found

    def column(self, token):
        return token.start - (self.text.rfind("\n", 0, token.start) + 1)

    def skip_group(self):
        """Past a bracket that opens here, and what closes it."""
        closing = [OPENING[self.peek().text]]
        self.at += 1
        while closing:
            token = self.peek()
            if token is None:
                raise ValueError(f"a bracket is not closed: {closing[-1]}")
            if token.kind != "text" and token.kind not in COMMENTS:
                if token.text in OPENING:
                    closing.append(OPENING[token.text])
                elif token.text == closing[-1]:
                    closing.pop()
                elif token.text == "]" and closing[-1] == "]]":  # `a[b[i]]` was read as an attribute
                    closing.pop()
                elif token.text == "]]" and closing[-1] == "]":
                    closing.pop()
                    closing.pop()
            self.at += 1

    def skip_angles(self):
        """Past <...> of a template."""
        depth = 0
        while token := self.peek():
            if token.text in OPENING:
                self.skip_group()
                continue
            depth += (token.text == "<") - (token.text == ">")
            self.at += 1
            if depth == 0:
                return

    def declaration(self, is_public, class_name):
        first = self.peek()
        if first.text == "namespace" or (first.text == "inline" and self.tokens[self.at + 1].text == "namespace"):
            return self.namespace(is_public)
        made = Declaration("other", [], first.start, first.end, is_public=is_public)
        state = dict(key=None, equals=False, pointer=None, parameters=None, initializers=False, head=[])
        head = state["head"]
        while token := self.peek():
            text, before = token.text, head[-1].text if head else ""
            if token.kind in COMMENTS or token.kind == "pre":
                self.at += 1
            elif text == ";":
                self.at += 1
                made.end = token.end
                break
            elif text == "}":  # a declaration without its end; the scope's own brace
                made.end = token.start
                break
            elif text == "template" and self.tokens[self.at + 1].text == "<":
                head.append(token)
                self.at += 1
                self.skip_angles()
            elif text == "<" and not state["equals"] and before != "operator" and head and (head[-1].kind == "word"):
                self.skip_angles()
            elif text == "operator" and token.kind == "word":
                self.operator(head)
            elif text == "(":
                if head and state["parameters"] is None and self.tokens[self.at + 1].text == "*":  # int (*f)(int)
                    state["pointer"] = state["pointer"] or self.tokens[self.at + 2].text
                is_value = state["equals"] or state["pointer"] or state["parameters"] is not None
                is_name = bool(head) and head[-1].kind in ("word", "operator") and before not in NO_PARAMETERS_AFTER
                if is_name and not is_value:
                    state["parameters"] = len(head)
                self.skip_group()
                if state["parameters"] == len(head):
                    state["past_parameters"] = self.tokens[self.at - 1].end
                head.append(token)
            elif text in ("[", "[["):
                self.skip_group()
            elif text == "{":
                if self.brace(made, state, class_name):
                    break
            else:
                if text == "=" and state["parameters"] is None:
                    state["equals"] = True
                if text == ":" and state["parameters"] is not None:
                    state["initializers"] = True
                if text in KEYS and state["parameters"] is None and not state["equals"]:
                    state["key"] = state["key"] or token
                head.append(token)
                self.at += 1
        made.tokens = head
        self.classify(made, state)
        return made

    def operator(self, head):
        """`operator<<`, `operator()`, `operator bool` as one token."""
        start = self.tokens[self.at]
        self.at += 1
        if self.peek().text == "(":  # operator()
            self.at += 2
        else:
            while self.peek().text != "(":
                self.at += 1
                if self.tokens[self.at - 1].text == "[":
                    self.at += 1
        end = self.tokens[self.at - 1].end
        name = re.sub(r"\s+", " ", self.text[start.start:end])
        head.append(Token("operator", name, start.start, end))

    def brace(self, made, state, class_name):
        """At a `{`: reads a body or skips a value. Whether the declaration ends behind it."""
        head, opening = state["head"], self.peek()
        before = head[-1].text if head else ""
        if state["key"] and state["parameters"] is None and not state["equals"]:
            self.at += 1
            key = state["key"].text
            name = self.class_name(head)
            if key == "enum":
                made.children = self.enumerators(made.is_public)
            else:
                is_friend = any(t.text == "friend" for t in head)
                made.children = self.scope(made.is_public and not is_friend, True, key != "class", name)
            closing = self.peek()
            made.body = (opening.end, closing.start)
            self.at += 1
            return False
        is_requirement = before == "requires" or (before == "(" and len(head) > 1 and head[-2].text == "requires")
        is_value = (state["equals"] or state["parameters"] is None or is_requirement
                    or (state["initializers"] and head[-1].kind == "word"))
        self.skip_group()
        head.append(Token("sign", "{", opening.start, opening.end))
        if is_value:
            return False
        made.end = self.tokens[self.at - 1].end
        return True

    def namespace(self, is_public):
        first, names = self.peek(), []
        while self.peek().text not in ("{", ";", "="):
            names.append(self.peek().text)
            self.at += 1
        name = "".join(word for word in names if word not in ("namespace", "inline"))
        made = Declaration("namespace", [name], first.start, first.end)
        made.is_public = is_public and name != "" and "detail" not in name.split("::")
        if self.peek().text != "{":
            while self.peek().text != ";":
                self.at += 1
            made.kind, made.end = "other", self.peek().end
            self.at += 1
            return made
        opening = self.peek()
        self.at += 1
        made.children = self.scope(made.is_public)
        made.body = (opening.end, self.peek().start)
        made.end = self.peek().end
        self.at += 1
        return made

    def enumerators(self, is_public):
        found, docs = [], []
        while (token := self.peek()) and token.text != "}":
            if token.kind == "doc":
                docs.append(token)
                self.at += 1
            elif token.kind in ("comment", "block"):
                self.at += 1
            else:
                made = Declaration("enumerator", [token.text], token.start, token.end, docs, is_public=is_public)
                docs = []
                while self.peek().text not in (",", "}"):
                    if self.peek().text in OPENING:
                        self.skip_group()
                    elif self.peek().kind in COMMENTS:
                        break
                    else:
                        self.at += 1
                    made.end = self.tokens[self.at - 1].end
                if self.peek().text == ",":
                    made.end = self.peek().end
                    self.at += 1
                made.trailing = self.trailing(made.end)
                found.append(made)
        return found

    @staticmethod
    def class_name(head):
        """The first word behind `struct`, `enum class` and the like."""
        key = next(i for i, token in enumerate(head) if token.text in KEYS)
        words = [t.text for t in head[key:] if t.kind == "word" and t.text not in KEYS | {"alignas", "final"}]
        return words[0] if words else ""

    def classify(self, made, state):
        head = state["head"]
        words = [t.text for t in head]
        if words[:1] == ["using"]:
            made.kind = "alias" if "=" in words else "other"
            made.names = words[1:2] if "=" in words else []
        elif "static_assert" in words[:1]:
            made.kind = "other"
        elif "concept" in words:
            made.kind, made.names = "concept", [words[words.index("concept") + 1]]
        elif "using" in words and "=" in words:
            made.kind, made.names = "alias", [words[words.index("using") + 1]]
        elif state["key"] and state["parameters"] is None and (made.body or not state["equals"]):
            made.kind = "enum" if state["key"].text == "enum" else "class"
            made.names = [self.class_name(head)]
            if not made.body:
                made.kind = "other"  # it is only announced
        elif state["parameters"] is not None:
            at = state["parameters"] - 1
            made.kind, made.names = "function", [words[at]]
            if at and words[at - 1] == "~":
                made.names = ["~" + words[at]]
            if at and words[at - 1] == "::":
                made.kind = "other"  # the body of what was declared
            first = self.result_at(words)
            if first < at:
                made.result = ((head[first].start, head[at].start), state["past_parameters"])
        elif state["pointer"]:
            made.kind, made.names = "variable", [state["pointer"]]
        elif words:
            made.kind = "variable"
            self.find_declarators(made)

    @staticmethod
    def result_at(words):
        """The number of the token at which the type of a function's result begins: past `requires ...` and the like."""
        at, specifiers = 0, {"template", "static", "inline", "constexpr", "explicit", "friend", "virtual"}
        while at < len(words) and (words[at] in specifiers or words[at] == "requires"):
            is_requirement, at = words[at] == "requires", at + 1
            while is_requirement and at < len(words):  # terms, joined by && or ||
                if words[at] == "requires":  # (...) {...}
                    at += 1 + (words[at + 1] == "(")
                at += 1
                while at + 1 < len(words) and words[at] == "::":
                    at += 2
                is_requirement = words[at:at + 2] in (["&", "&"], ["|", "|"])
                at += 2 * is_requirement
        return at

    def find_declarators(self, made):
        """The names of `double a = 0, b{};` and where each begins and ends."""
        inside = [t for t in self.tokens if made.start <= t.start < made.end and t.kind not in COMMENTS]
        depth, angles, is_value, name, last = 0, 0, False, None, None
        for before, token in zip([None] + inside, inside):
            text, is_outside = token.text, depth == 0 and angles == 0
            if is_outside and text in (",", ";"):
                if name:
                    made.names.append(name.text)
                    made.declarators.append((name.start, last.end))
                is_value, name = False, None
                continue
            if is_outside and not is_value:
                if token.kind == "word":
                    name = token
                is_value = text in ("=", "{", ":") and name is not None
            if text == "<" and not is_value and before is not None and before.kind == "word":
                angles += 1
            elif text == ">" and angles:
                angles -= 1
            depth += (text in OPENING) - (text in OPENING.values())
            last = token


def read(text):
    """The declarations of a header."""
    return Reader(text).scope(True)
