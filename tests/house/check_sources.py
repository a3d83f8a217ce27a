"""The rules of the house that a machine can check: which room includes which, how includes are written, how long a
file is, how it and its comments begin. Prints `file:line: what is wrong: what to do`, one line a finding; exit 1 if
there is any.

    check_sources.py [ROOT]
"""
import pathlib
import re
import sys

# A room includes from itself and from rooms before it in this list; gradus.h, the one include of users, is last.
ROOMS = ("base tensor scalar graph ops interop autodiff compiler backend function gradients fitting formats data text nn optim "
         "distribute train erased onnx profile advice").split()
# Folders of a room, each after those that it includes from. Headers of users lie above them, in the room itself.
PARTS = {"distribute": "cluster messages collectives membership mirrored parameter_servers".split()}
FOLDERS = ["gradus", "apps", "examples", "tests", "bench", "fuzz", "python"]
CODE = {".h", ".cpp"}
LONGEST = 600
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
# What writes or reads as the caller's locale has it, or has no bound: pattern, where it may stand, what to do instead.
LOCALE = "has the caller's locale"
AVOIDED = [
    (re.compile(r"std::(?:basic_)?[io]?(?:string|f)stream\b"), {"gradus/base/error.h"},
     f"a stream {LOCALE}: write with text() or TextStream (gradus/base/error.h), read with gradus/base/input_file.h"),
    (re.compile(r"\b(?:strto(?:d|f|ld)|sto(?:f|d|ld|i|l|ul|ll|ull)|ato[fil]|atoll|v?(?:f|s|sn|as|d)?printf|v?[fs]?scanf|"
                r"localeconv|setlocale|is(?:alnum|alpha|digit|lower|upper|punct|space|print|xdigit)|to(?:lower|upper))\(|"
                r"std::(?:is(?:alnum|alpha|digit|lower|upper|punct|space|print|xdigit)|to(?:lower|upper))\b"),
     set(), f"a function of C {LOCALE}: take std::to_chars, std::from_chars, text() or a comparison"),
    (re.compile(r"std::regex\b"), set(), f"a regular expression {LOCALE}: write out what is sought"),
    (re.compile(r"std::to_string\((?:[^()]*\.\d|static_cast<(?:double|float)>)"), set(),
     f"std::to_string of a floating number {LOCALE}: take text() or std::to_chars"),
    (re.compile(r"(?i)\bjson::(?:parse|sax_parse)\("), {"gradus/formats/json.cpp"},
     "JSON is read without a bound: take parse_json (gradus/formats/json.h)"),
    (re.compile(r"(?:observed\(\)\s*\.|value\.get\(\)\s*->)\s*(?:template )?data\b"), set(),
     "memory that may be a device's is read: take Tensor::host(), which waits and copies"),
    (re.compile(r"std::vector<.*>(?: \w+)?\((?:at\(|static_cast<std::size_t>\()?[\w.]*graph_?(?:\.size\(\)|\.values\.size\(\))"),
     set(), "a list by the numbers of values: take PerValue (gradus/graph/per_value.h)"),
    (re.compile(r"\brequire_not_negative\([^\[]*\btext\("), {"gradus/ops/checks.h"},
     "the text of an error is made where nothing is wrong: give a function that makes it (gradus/ops/size_bounds.h)"),
    (re.compile(r"size_t at\((?:int|std::int64_t|std::ptrdiff_t) "), set(),
     "a number as an index: take at() or Numbered (gradus/base/numbered.h)"),
]
# In CMake: a processor has several names, so they are compared in one place.
PROCESSOR = re.compile(r"STREQUAL[^#]*CMAKE_SYSTEM_PROCESSOR|CMAKE_SYSTEM_PROCESSOR[^#]*STREQUAL")
# In tests, too.
EVERYWHERE = (re.compile(r"^\s*(?:const )?std::initializer_list<[^;()]*> \w+(?:;| = \{(?!\}))"), set(),
              "a list whose elements end with the expression that made them: take std::vector")
# In the rooms that compile and run programs: their inputs are arguments.
HIDDEN = (re.compile(r"CallContext::(?!log\b|here\(\)\.log\b)|\bdefault_device\(\)|\bDeviceScope(?:::|\s+\w+\()|\bthread_local\b"),
          {"gradus/backend/c_words.cpp", "gradus/backend/cpu/codegen/llvm_failures.cpp", "gradus/backend/cpu/isa.cpp"},
          "state of the thread in a program: give it in CompileOptions or RunContext (gradus/backend/run_context.h)")
COMPILES = ("gradus/backend/", "gradus/compiler/")
# In the library alone: how the command says things is its own matter.
OF_THE_CALLER = (re.compile(r"std::(?:cout|cerr|clog)\b"), {"gradus/base/notice.cpp", "gradus/base/print.h"},
                 "a stream of the caller: say it with notice(text(...)) (gradus/base/notice.h)")
# Files that may wait for another process: a wait without a time limit may never end.
ENDLESS = re.compile(r"(?:\.|->)wait\(\s*\w*lock\b|(?:\.|->)Wait\(\)|\bpoll\([^;]*,\s*-1\)|\bwaitpid\([^;]*,\s*0\)|"
                     r"\bwaitid\((?:(?!WNOHANG)[^;])*\);|\bget_future\(\)\.(?:get|wait)\(\)")
WAITING = ("gradus/distribute/", "apps/gradus/launch", "apps/gradus/rank")
REASON = "no deadline: "
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The room of gradus/<room>/...; `gradus.h` for the header at the top; nothing for what is outside gradus/."""
    parts = path.parts
    return parts[1] if len(parts) > 1 and parts[0] == "gradus" else None


def rank(room):
    return len(ROOMS) if room == "gradus.h" else ROOMS.index(room)


def is_llvm(target):
    return target.split("/")[0] in ("llvm", "llvm-c")


def check_include(root, path, quote, target):
    """What is wrong with one include, or nothing."""
    if is_llvm(target):
        if path.parts[:3] != ("gradus", "backend", "cpu"):
            return f"LLVM's header {target} outside gradus/backend/cpu: put what needs it behind a header there"
        return None
    if target.split("/")[0] in ("ucp", "ucs", "uct", "grpc", "grpcpp") and not path.name.endswith("_component.cpp"):
        return f"{target} outside a *_component.cpp: put what needs it behind the table of its component"
    if target.endswith(".pb.h") and room_of(path) != "onnx" and path.name != "example.cpp":
        return f"generated code {target} outside gradus/onnx: use what gradus/onnx/model_file.h offers"
    if quote == '"':
        if path.parts[:2] == ("examples", "gallery"):  # projects of their own: files beside each other
            return None if (root / path.parent / target).exists() else f'"{target}" is not beside the file'
        if target.split("/")[0] not in FOLDERS:
            return f'"{target}" is not relative to the root of the repository: write "gradus/<room>/..."'
        if not (root / target).exists():
            return f'"{target}" does not exist'
    room, other = room_of(path), room_of(pathlib.PurePosixPath(target))
    if room is None or other is None or room not in ROOMS:
        return None
    if other != "gradus.h" and other not in ROOMS:
        return None  # reported where that folder's own files are checked
    if rank(other) > rank(room):
        return (f"room {room} includes from {other}, which stands after it: move what is needed into {room} or a room "
                f"before it")
    return check_part(path, pathlib.PurePosixPath(target)) if room == other and room in PARTS else None


def check_part(path, target):
    """What is wrong with an include within a room that has PARTS, or nothing."""
    parts = PARTS[path.parts[1]]
    here, there = (found.parts[2] if len(found.parts) > 3 else None for found in (path, target))
    for part in (here, there):
        if part is not None and part not in parts:
            return f"{part} is no folder of {path.parts[1]}: use one of {' '.join(parts)}"
    if there is None or here == there:
        return None
    if here is None:
        return (f"a header for users includes {target}, from within: announce the type, and include it in the .cpp"
                if path.suffix == ".h" else None)
    if parts.index(there) > parts.index(here):
        return f"{here} includes from {there}, which stands after it: move what is needed into {here} or a folder before it"
    return None


def begins_well(path, lines):
    """With a comment, or with the file's own header, whose comment then speaks for both."""
    return not lines or lines[0].startswith("//") or lines[0] == f'#include "{path.with_suffix(".h")}"'


def check_code(root, path, lines):
    if not begins_well(path, lines):
        yield 1, "no first comment: say in one to five lines (///) what the file is for"
    if path.suffix == ".h" and not any(line.strip() == "#pragma once" for line in lines):
        yield 1, "a header without `#pragma once`"
    included = set()
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        problem = match and check_include(root, path, *match.groups())
        if problem:
            yield number, problem
        if match and path.suffix == ".h" and match[2] in included:
            yield number, f"{match[2]} is included above already"
        if match:
            included.add(match[2])


def check_avoided(path, lines):
    is_shipped = path.parts[0] in ("gradus", "apps")
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        rules = [EVERYWHERE] + (AVOIDED if is_shipped else []) + ([OF_THE_CALLER] if room_of(path) else []) + ([HIDDEN] if str(path).startswith(COMPILES) else [])
        for pattern, allowed, problem in rules:
            if pattern.search(code) and str(path) not in allowed:
                yield number, problem


MOVED = re.compile(r"std::(?:move|exchange)\(\*?(\w+(?:(?:\.|->)\w+)*)[,)]")
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')


def bracket_around(code, position, step):
    """The place of the bracket that encloses `position`, to the left (step -1) or to the right (step 1)."""
    depth, i = 0, position
    while 0 <= i < len(code):
        if code[i] in ("([{" if step > 0 else ")]}"):
            depth += 1
        elif code[i] in (")]}" if step > 0 else "([{"):
            if depth == 0:
                return i
            depth -= 1
        elif code[i] == ";" and depth == 0:
            return None
        i += step
    return None


def check_moves(path, text):
    """Arguments of one call are evaluated in any order: one that moves a variable, itself or within a further call, and
    another one that reads it."""
    if path.parts[0] not in ("gradus", "apps"):
        return
    code = TEXT.sub(lambda found: '"' + " " * (len(found[0]) - 2) + '"', text)
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), code)
    for move in MOVED.finditer(code):
        begin, end = move.start(), bracket_around(code, move.start(1), 1) + 1
        while True:
            left, right = bracket_around(code, begin - 1, -1), bracket_around(code, end, 1)
            if left is None or right is None or code[left] == "[":
                break
            before, after = code[left + 1:begin], code[end:right]
            is_call = code[left] == "(" and "?" not in before  # neither a list nor one of two branches
            if is_call and re.search(rf"(?<![\w.>:]){re.escape(move[1])}\b", before + ";" + after):
                yield (text.count("\n", 0, move.start()) + 1,
                       f"`{move[1]}` is moved by one argument and read by another, in whichever order the compiler "
                       "takes: read it before the call")
                break
            begin, end = left, right + 1


def check_waits(path, lines):
    if not str(path).startswith(WAITING):
        return
    for number, line in enumerate(lines, 1):
        if ENDLESS.search(line.split("//")[0]) and REASON not in line and REASON not in lines[number - 2]:
            yield number, (f"a wait without a deadline: take wait_until and LivedDeadline (gradus/base/lived_time.h), or "
                           f"say why it ends in a comment `{REASON}...` there or above it")


def check_own_names(path, lines):
    """Tests of a room are compiled several at a time. Without a namespace of its own a test that calls f(1) may get the
    overload of another one."""
    stem = path.stem
    if path.parts[0] != "tests" or path.suffix != ".cpp" or not (stem.endswith("_test") or stem.startswith("rows_")):
        return
    if "namespace {" in lines and not any(re.fullmatch(rf"namespace (?:\w+::)*{stem} \{{", line) for line in lines):
        yield (lines.index("namespace {") + 1,
               f"names that other tests of the room see: put them into `namespace gradus::{stem} {{`")


def check_file(root, path):
    room = room_of(path)
    if room and path.suffix in CODE and room not in ROOMS + ["gradus.h"]:
        yield 1, f"gradus/{room} is no room: use one of {' '.join(ROOMS)}"
    vague = VAGUE.intersection(part.split(".")[0] for part in path.parts)
    if vague:
        yield 1, f"the name `{vague.pop()}` says nothing: name the file after its subject"
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if len(lines) > LONGEST and path.suffix in CODE | {".py"}:
        yield LONGEST + 1, f"{len(lines)} lines, at most {LONGEST}: it has two subjects, make two files"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "left unfinished: do it, or leave it out and say so in docs/"
        if PROCESSOR.search(line) and (path.suffix == ".cmake" or path.name == "CMakeLists.txt"):
            yield number, "one name of a processor that has several, as aarch64 is arm64, too: take gradus_on_arm"
    if path.suffix in CODE:
        yield from check_code(root, path, lines)
        yield from check_avoided(path, lines)
        yield from check_moves(path, "\n".join(lines))
        yield from check_waits(path, lines)
        yield from check_own_names(path, lines)


TYPE_OR_SCOPE = re.compile(
    r"namespace\s*([\w:]*)\s*\{|\b(?:struct|class|union|enum(?: class)?)\s+(?:\[\[[^\]]*\]\]\s*)?(?:alignas\([^)]*\)\s*)?"
    r"([A-Za-z_]\w*)(?!\s*::)\s*(?:final\s*)?(?::(?!:)[^;{(]*)?\{|\{|\}")
NO_CODE = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'")
SPECIALIZED = re.compile(r"template\s*<[^;{}]*>\s*(?:requires[^;{}]*)?$")


def types_of(text):
    """Types that are defined at namespace scope, with the namespace, and where they begin."""
    code = NO_CODE.sub(lambda match: " " * len(match[0]), text)
    scopes = []
    for match in TYPE_OR_SCOPE.finditer(code):
        if match[0] == "}":
            if scopes:
                scopes.pop()
        elif match[0].startswith("namespace"):
            scopes.append(match[1] or "-")  # "-": each source has one of its own
        else:
            named = match[2] and None not in scopes and "-" not in scopes
            if named and not SPECIALIZED.search(code[max(0, match.start() - 200):match.start()]):
                yield "::".join(scopes + [match[2]]), code.count("\n", 0, match.start()) + 1
            scopes.append(None)


def check_types(root):
    """One name for two types of the library breaks the rule of one definition: each source sees the one it includes."""
    first = {}
    for file in sorted((root / "gradus").rglob("*")):
        if file.suffix not in CODE:
            continue
        path = file.relative_to(root).as_posix()
        for name, line in types_of(file.read_text(encoding="utf-8")):
            known = first.setdefault(name, path)
            if known != path:
                yield f"{path}:{line}: {name} is also a type of {known}: give one of them another name"


COMMENT = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//([^\n]*)')
INVERTED = {"Of", "What", "Who", "Whom", "Whose", "Whether", "Which"}
MOST_INVERTED = 0.03  # of the comments of a room


def openings(text):
    """Line and first word of each comment. Comments below each other at one column are one if nothing else stands in
    the lines that follow the first."""
    before, line, counted = None, 1, 0
    for match in COMMENT.finditer(text):
        if match[2] is None:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        line, counted, column = line + text.count("\n", counted, begin), begin, match.start() - begin
        goes_on = before == (line - 1, column) and not text[begin:match.start()].strip()
        word = re.search(r"[A-Za-z]+", match[2])
        if word and not goes_on:
            yield line, word[0]
        before = line, column


def check_openings(root):
    """Comments begin with their subject, not with a clause about it; a few may do otherwise."""
    rooms = {}
    for file in sorted(f for top in ("gradus", "apps") for f in (root / top).rglob("*") if f.suffix in CODE):
        path = file.relative_to(root)
        room = "/".join(path.parts[:-1][:2])
        rooms.setdefault(room, []).extend((f"{path.as_posix()}:{line}", word)
                                          for line, word in openings(file.read_text(encoding="utf-8")))
    for room, comments in rooms.items():
        inverted = [place for place, word in comments if word in INVERTED]
        if len(inverted) >= MOST_INVERTED * len(comments) and inverted:
            yield (f"{inverted[0]}: {len(inverted)} of {len(comments)} comments of {room} begin with Of, What, Who, "
                   f"Whether or Which, {MOST_INVERTED:.0%} or more: begin with the subject (docs/contributing.md), here "
                   f"and at {', '.join(inverted[1:8]) or 'no other place'}")


def findings(root):
    yield from check_types(root)
    yield from check_openings(root)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in CODE | {".py", ".cmake", ".sh"} or file.name == "CMakeLists.txt":
                path = pathlib.PurePosixPath(file.relative_to(root).as_posix())
                for number, problem in check_file(root, path):
                    yield f"{path}:{number}: {problem}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / "gradus").is_dir():
        sys.exit(f"check_sources: {root} has no folder gradus")
    found = list(findings(root))
    print("\n".join(found) if found else "no findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
