"""The rules of the house for documents: links lead somewhere, every decision has one number, a status and a row in the
index, architecture.md stays short, code that is compiled elsewhere is the same there, lines of prose and cells of README's tables are not long. Prints
`file:line: what is wrong: what to do`; exit 1 if there is any.

    check_docs.py [ROOT]
"""
import pathlib
import re
import sys

DECISIONS = pathlib.PurePosixPath("docs/decisions")
INDEX = DECISIONS / "README.md"
# Pages that are read as a whole have at most so many lines.
LONGEST = {"docs/architecture.md": 260}
WIDEST = 140  # columns of a line of prose: not of tables, nor of blocks of code
WORDS_OF_CELL = {"README.md": 25}  # of the page that is read first
CODE = {".h", ".cpp", ".py"}
LINK = re.compile(r"""\]\(([^()\s]+)(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s+(\S+)""")  # [text](target), [name]: target
COMPILED = re.compile(r"<!-- compiled in (\S+) -->")
BACKQUOTED = re.compile(r"`(?:[^`\n]|\n(?!\s*\n))*`")
HEADING = re.compile(r"#+ (.*)")
DECISION = re.compile(r"### ((\d+)\. (.*\S))")
STATUS = re.compile(r"- \*\*Status:\*\* (?:holds|partly replaced by (\d+)|replaced by (\d+))\b")
ROW = re.compile(r"\| (\d+) \|")
# The name `gradus` on PyPI belongs to somebody else: whoever installs it gets a stranger's code.
STRANGER = re.compile(r"\bpip3?\s+(?:install|download)\b[^\n`]*?[\s\"']gradus(?![\w./-])")
QUOTED = re.compile(r"\b[Dd]ecisions? (\d+(?: and \d+)*)")
# "How" of a decision is short; "Detail", before the status, has the rest.
HOW = re.compile(r"- \*\*How:\*\* (.*(?:\n  .*)*)")
MASKED = re.compile(r"`[^`]*`|\([^()]*\)|\[[^\]]*\]")
END_OF_SENTENCE = re.compile(r"[.!?][*)\"']*(?=\s|$)")
SENTENCES_OF_HOW, WORDS_OF_HOW = 2, 45


def documents(root):
    """Every page of the tree by its path from the root, as lines."""
    files = [root / "README.md"] + [f for folder in ("docs", "examples", "bench", "configs")
                                    for f in sorted((root / folder).rglob("*.md"))]
    return {pathlib.PurePosixPath(f.relative_to(root).as_posix()): f.read_text(encoding="utf-8").splitlines()
            for f in files if f.exists()}


def without_blocks(lines):
    """The same lines, those of blocks of code empty."""
    is_code = False
    for line in lines:
        is_fence = line.lstrip().startswith("```")
        yield "" if is_code or is_fence else line
        is_code ^= is_fence


def prose(lines):
    """(number, line) without blocks of code and what is `in backquotes`, which may go on in the next line."""
    text = BACKQUOTED.sub(lambda code: "\n" * code[0].count("\n"), "\n".join(without_blocks(lines)))
    return enumerate(text.split("\n"), 1)


def anchor(heading):
    """The name that a heading gets: its letters and digits in lower case, blanks as hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(lines):
    return {anchor(match[1]) for match in map(HEADING.fullmatch, without_blocks(lines)) if match}


def check_links(root, pages, path, lines):
    for number, line in prose(lines):
        for target in map("".join, LINK.findall(line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, fragment = target.partition("#")
            other = (root / path.parent / name).resolve() if name else root / path
            if not other.exists() or not other.is_relative_to(root):
                yield path, number, f"the link {target} leads nowhere: mend the path, which is relative to the page"
                continue
            page = pages.get(pathlib.PurePosixPath(other.relative_to(root).as_posix()))
            if fragment and page is not None and fragment not in anchors(page):
                yield path, number, f"the link {target} names no heading of that page: copy the heading's anchor"


def check_compiled(root, path, lines):
    """A block of code below a line `<!-- compiled in FILE -->` stands in that file, apart from its indentation."""
    for number, line in enumerate(lines, 1):
        named = COMPILED.fullmatch(line)
        if not named:
            continue
        file, block = root / named[1], lines[number + 1:]
        is_block = lines[number:number + 1] == ["```cpp"] and "```" in block
        if not file.is_file() or not is_block:
            yield path, number, f"{named[1]} does not exist, or no block of cpp follows: name the file that compiles it"
            continue
        code = "\n".join(line.strip() for line in block[:block.index("```")])
        if code not in "\n".join(line.strip() for line in file.read_text(encoding="utf-8").splitlines()):
            yield path, number, f"{named[1]} has other code: copy what is compiled there"


def check_width(path, lines):
    for number, line in enumerate(without_blocks(lines), 1):
        if not line.lstrip().startswith("|"):
            if len(line) > WIDEST:
                yield path, number, f"a line of {len(line)} columns, at most {WIDEST}: wrap the paragraph"
            continue
        for cell in line.strip().strip("|").split("|"):
            words, most = len(LINK.sub("]", cell).split()), WORDS_OF_CELL.get(str(path), len(line))
            if words > most:
                yield path, number, f"a cell of {words} words, at most {most}: shorten it, or move it to a page of docs/"


def decisions_of(lines):
    """(line, number, heading, whether it has a status, what replaces it) of each decision of a page."""
    starts = [i for i, line in enumerate(lines) if DECISION.fullmatch(line)]
    for i, end in zip(starts, starts[1:] + [len(lines)]):
        match = DECISION.fullmatch(lines[i])
        statuses = [s for s in map(STATUS.match, lines[i:end]) if s]
        replaced_by = [int(n) for s in statuses for n in s.groups() if n]
        yield i + 1, int(match[2]), match, len(statuses) == 1, replaced_by


def decision_pages(pages):
    return {path: lines for path, lines in pages.items() if path.parent == DECISIONS and path != INDEX}


def check_how(pages):
    """That a decision says how in a few words first."""
    for path, lines in decision_pages(pages).items():
        text = "\n".join(lines)
        for match in HOW.finditer(text):
            words, sentences = len(match[1].split()), len(END_OF_SENTENCE.findall(MASKED.sub("x", match[1])))
            if sentences > SENTENCES_OF_HOW and words > WORDS_OF_HOW:
                yield (path, text.count("\n", 0, match.start()) + 1,
                       f"How has {sentences} sentences and {words} words: leave {SENTENCES_OF_HOW} sentences or "
                       f"{WORDS_OF_HOW} words, and put the rest before the status as `- **Detail:** ...`")


def row_of(path, heading):
    return f"| {heading[2]} | [{heading[3]}]({path.name}#{anchor(heading[1])}) | {path.stem} |"


def check_decisions(pages):
    found, rows = {}, {}
    for path, lines in decision_pages(pages).items():
        last = 0
        for line, number, heading, has_status, replaced_by in decisions_of(lines):
            if number in found:
                yield path, line, f"decision {number} is in {found[number][0].name}, too: give it the next number"
            if number <= last:
                yield path, line, f"decision {number} stands after {last}: numbers ascend within a page"
            if not has_status:
                yield path, line, f"decision {number} has no status: end it with `- **Status:** holds.` or what is true"
            found.setdefault(number, (path, line, heading, replaced_by))
            last = number
    for number in sorted(set(range(1, max(found, default=0) + 1)) - set(found)):
        yield INDEX, 1, f"decision {number} is missing: numbers have no gaps, and what was replaced stays"
    for line, text in enumerate(pages.get(INDEX, []), 1):
        match = ROW.match(text)
        if match:
            rows.setdefault(int(match[1]), []).append((line, text))
    for number, (path, line, heading, replaced_by) in sorted(found.items()):
        wanted = row_of(path, heading)
        if [text for _, text in rows.get(number, [])] != [wanted]:
            yield INDEX, rows.get(number, [(1, "")])[0][0], f"decision {number} needs one row: `{wanted}`"
        yield from ((path, line, f"decision {number} is replaced by {n}, which does not exist")
                    for n in replaced_by if n not in found)
    yield from ((INDEX, entries[0][0], f"there is no decision {number}: take its row away")
                for number, entries in rows.items() if number not in found)


def check_quotes(root, pages):
    """That a decision exists which code or a page names."""
    known = {number for lines in decision_pages(pages).values() for _, number, *_ in decisions_of(lines)}
    sources = [f for folder in ("gradus", "apps", "tests", "bench") for f in sorted((root / folder).rglob("*"))
               if f.suffix in CODE and f.parent != root / "tests/house"]
    texts = [(path, lines) for path, lines in pages.items() if path != INDEX]
    texts += [(f.relative_to(root), f.read_text(encoding="utf-8").splitlines()) for f in sources]
    for path, lines in texts:
        for number, line in enumerate(lines, 1):
            yield from ((path, number, f"there is no decision {n}: name one of docs/decisions")
                        for quoted in QUOTED.findall(line) for n in quoted.split(" and ") if int(n) not in known)


def check_installations(root, pages):
    """No text tells anybody to install the distribution `gradus`, code and comments included."""
    texts = dict(pages)
    files = [f for folder in ("gradus", "apps", "python", "examples", "bench", "tools", "docs") for f in (root / folder).rglob("*")
             if f.suffix in CODE | {".sh", ".toml", ".txt"}] + [root / "Makefile"]
    texts.update((f.relative_to(root), f.read_text(encoding="utf-8").splitlines()) for f in files if f.is_file())
    for path, lines in texts.items():
        for number, line in enumerate(lines, 1):
            if STRANGER.search(line):
                yield path, number, "PyPI's gradus is another project's: name the file that `make wheel` made"


def findings(root):
    root = root.resolve()
    pages = documents(root)
    for path, lines in pages.items():
        most = LONGEST.get(str(path), len(lines))
        if len(lines) > most:
            yield f"{path}:{most + 1}: {len(lines)} lines, at most {most}: move what is a decision to {DECISIONS}"
        yield from (f"{p}:{n}: {problem}" for p, n, problem in check_links(root, pages, path, lines))
        yield from (f"{p}:{n}: {problem}" for p, n, problem in check_width(path, lines))
        yield from (f"{p}:{n}: {problem}" for p, n, problem in check_compiled(root, path, lines))
    yield from (f"{p}:{n}: {problem}" for p, n, problem in check_decisions(pages))
    yield from (f"{p}:{n}: {problem}" for p, n, problem in check_how(pages))
    yield from (f"{p}:{n}: {problem}" for p, n, problem in check_quotes(root, pages))
    yield from (f"{p}:{n}: {problem}" for p, n, problem in check_installations(root, pages))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    if not (root / "docs").is_dir():
        sys.exit(f"check_docs: {root} has no folder docs")
    found = list(findings(root))
    print("\n".join(found) if found else "no findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
