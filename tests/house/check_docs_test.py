"""Each rule of check_docs.py finds its violation in a small tree, at the right line, and passes the tree without it."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import check_docs  # noqa: E402

ROOM = "docs/decisions/ops.md"
INDEX = "docs/decisions/README.md"
FIRST = "# Ops\n\n### 1. An op is `one` struct\n\n- **Why:** it is read at once.\n- **Status:** holds.\n"
THIRD = "\n### 3. Its rules [n] are its members\n\n- **Status:** replaced by 2.\n"
ROWS = ["| 1 | [An op is `one` struct](ops.md#1-an-op-is-one-struct) | ops |",
        "| 2 | [A view is read in place](graph.md#2-a-view-is-read-in-place) | graph |",
        "| 3 | [Its rules [n] are its members](ops.md#3-its-rules-n-are-its-members) | ops |"]
TIDY = {
    "README.md": "# All\n\n[ops](docs/decisions/ops.md), [first](docs/decisions/ops.md#1-an-op-is-one-struct),\n"
                 "[out](https://example.org/gone), [here](#all), [code](gradus/op.h)\n",
    "docs/architecture.md": "# Rooms\n\n`[no](link.md)`\n\n```\n[none](either.md)\n# no heading\n```\n" + "\n" * 242,
    "docs/wide.md": "word " * 27 + "ends\n\n| " + "cell " * 40 + "|\n\n```\n" + "code " * 40 + "\n```\n",
    ROOM: FIRST + THIRD,
    "docs/decisions/graph.md": "# Graph\n\n### 2. A view is read in place\n\n- **Status:** partly replaced by 3: no.\n",
    INDEX: "# Index\n\n```\n### 9. A form\n```\n\n" + "\n".join(ROWS) + "\n",
    "docs/code.md": "<!-- compiled in gradus/op.h -->\n```cpp\nstruct Op {\n  int a;\n};\n```\n",
    "gradus/op.h": "/// Ops (decision 1).\n  struct Op {\n    int a;\n  };\n",
}
TIDY["docs/wheel.md"] = "`pip install build/wheel/gradus_ml-0.1.0.whl`, `pip install ./gradus`, `pip install gradus-ml`\n"
# file, its text, the file and line of the finding, a part of the message
VIOLATIONS = [
    ("docs/new.md", "\n`pip install gradus`\n", "docs/new.md:2", "another project's"),
    ("docs/new.md", "```sh\npython -m pip install -U numpy gradus\n```\n", "docs/new.md:2", "another project's"),
    ("python/a.py", '"""pip install "gradus==1"."""\n', "python/a.py:1", "another project's"),
    ("README.md", "# All\n\n[gone](docs/gone.md)\n", "README.md:3", "docs/gone.md leads nowhere"),
    ("docs/new.md", "[gone](decisions/gone.md)\n", "docs/new.md:1", "leads nowhere"),
    ("docs/new.md", "![gone](gone.png)\n", "docs/new.md:1", "leads nowhere"),
    ("docs/new.md", "[`code`](docs/decisions/ops.md)\n", "docs/new.md:1", "leads nowhere"),
    ("docs/new.md", '[gone](gone.md "with a title")\n', "docs/new.md:1", "gone.md leads nowhere"),
    ("docs/new.md", "[a long\ntext](gone.md)\n", "docs/new.md:2", "leads nowhere"),
    ("docs/new.md", "[gone]\n\n[gone]: gone.md\n", "docs/new.md:3", "leads nowhere"),
    ("docs/new.md", "`code\nof two lines` [gone](gone.md) `more`\n", "docs/new.md:2", "leads nowhere"),
    ("docs/new.md", "one ` alone\n\n[gone](gone.md), another ` alone\n", "docs/new.md:3", "leads nowhere"),
    ("docs/new.md", "[up](../../outside.md)\n", "docs/new.md:1", "leads nowhere"),
    ("bench/NEW.md", "\n[gone](gone.md)\n", "bench/NEW.md:2", "leads nowhere"),
    ("docs/new.md", "[part](decisions/ops.md#no-such)\n", "docs/new.md:1", "names no heading"),
    ("docs/new.md", "# Here\n[part](#there)\n", "docs/new.md:2", "names no heading"),
    ("docs/new.md", "[part](architecture.md#no-heading)\n", "docs/new.md:1", "names no heading"),
    ("docs/architecture.md", "\n" * 261, "docs/architecture.md:261", "261 lines, at most 260"),
    (ROOM, FIRST, f"{INDEX}:9", "there is no decision 3"),
    (ROOM, THIRD, f"{INDEX}:1", "decision 1 is missing"),
    ("docs/decisions/graph.md", "### 1. Again\n\n- **Status:** holds.\n", f"{ROOM}:3", "decision 1 is in graph.md"),
    (ROOM, THIRD + FIRST, f"{ROOM}:7", "decision 1 stands after 3"),
    (ROOM, FIRST + "\n### 3. Its rules [n] are its members\n", f"{ROOM}:8", "decision 3 has no status"),
    (ROOM, FIRST + THIRD.replace("replaced by 2", "perhaps"), f"{ROOM}:8", "decision 3 has no status"),
    (ROOM, FIRST + THIRD.replace("replaced by 2", "replaced by 4"), f"{ROOM}:8", "replaced by 4, which does not exist"),
    (ROOM, FIRST + THIRD + "\n### 4. New\n\n- **Status:** holds.\n", f"{INDEX}:1", "decision 4 needs one row: "
     "`| 4 | [New](ops.md#4-new) | ops |`"),
    (ROOM, FIRST.replace("one", "an") + THIRD, f"{INDEX}:7", "decision 1 needs one row"),
    (INDEX, "\n".join(ROWS + ROWS[:1]) + "\n", f"{INDEX}:1", "decision 1 needs one row"),
    ("docs/new.md", "# Wide\n\n" + "word " * 28 + "ends\n", "docs/new.md:3", "a line of 144 columns"),
    ("README.md", "# All\n\n| a | " + "word " * 25 + "[two words](docs/wide.md) |\n", "README.md:3", "a cell of 27 words"),
    ("gradus/op.h", "/// Ops.\n/// (decision 12)\n", "gradus/op.h:2", "there is no decision 12"),
    ("gradus/op.h", "/// Decisions 1 and 12.\n", "gradus/op.h:1", "there is no decision 12"),
    (ROOM, FIRST.replace("- **Status", "- **How:** " + "It has words. " * 16 + "\n- **Status") + THIRD, f"{ROOM}:6",
     "How has 16 sentences and 48 words"),
    ("docs/new.md", "Since decision 12.\n", "docs/new.md:1", "there is no decision 12"),
    ("docs/new.md", "<!-- compiled in gradus/op.h -->\n```cpp\nstruct Op {\n};\n```\n", "docs/new.md:1", "has other code"),
    ("docs/new.md", "<!-- compiled in gradus/gone.h -->\n```cpp\nint a;\n```\n", "docs/new.md:1", "does not exist"),
    ("docs/new.md", "<!-- compiled in gradus/op.h -->\nstruct Op {\n", "docs/new.md:1", "no block of cpp follows"),
]


class CheckDocs(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check_docs.findings(pathlib.Path(folder)))

    def test_tidy_tree_passes(self):
        self.assertEqual(self.findings(TIDY), [])

    def test_each_violation_is_found(self):
        for name, text, place, message in VIOLATIONS:
            with self.subTest(file=name, text=text):
                found = self.findings(TIDY | {name: text})
                self.assertTrue(any(f.startswith(f"{place}: ") and message in f for f in found), found)


if __name__ == "__main__":
    unittest.main()
