"""What docs/api/for_doxygen.py makes of a header: which names are for users, and with which comment."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "api"))
import for_doxygen  # noqa: E402


def header(body):
    return f"/// Things.\n#pragma once\nnamespace gradus {{\n{body}\n}}  // namespace gradus\n"


def rendered(body):
    return for_doxygen.Page("gradus/ops/things.h", header(body)).render()


def undocumented(body):
    names = for_doxygen.Names(header(body))
    return [(names.line(d) - 3, *d.names) for d in names.undocumented]


# a body, and what it becomes
SHOWN = [
    ("struct A {\n  int n = 0;  // number of rows\n};", "int n = 0;  /**< number of rows */"),
    ("struct A {\n  int n = 0;  // number of rows,\n              // or 0\n};", "/**< number of rows, or 0 */"),
    ("struct A {\n  double a = 0, b{1};  // of a; of b\n};", "of a */ double a = 0; /**  of b */ double b{1};"),
    ("struct A {\n  std::map<int, int> a = {}, b = {};  // both\n};",
     "both */ std::map<int, int> a = {}; /**  both */ std::map<int, int> b = {};"),
    ("/// First values.\nint a = f(1, 2), b = 3;",
     "/** First values.  */ int a = f(1, 2); /** First values.  */ int b = 3;"),
    ("/// Adds.\nint add(int a);\nint add(int a, int b);", "/** Adds. */ int add(int a, int b);"),
    ("/// A layer.\nstruct Dense {\n  explicit Dense(int units = 3);\n};", "/** Makes a %Dense. */ explicit Dense("),
    ("/// All of x <= y, @home, \\n, `a<b>`, 5 %, #3, std::x.\nint f();",
     "/** All of x \\<= y, \\@home, \\\\n, <code>a\\<b\\></code>, 5 \\%, \\#3, std\\::x. */"),
    ("/// Like this:\n///\n///   f(x);\n///\n/// and more.\nint f();",
     "Like this:\n\\code{.cpp}\n  f(x);\n\\endcode\nand more."),
    ("/// Zips.\ntemplate <int... N>\n  requires(sizeof...(N) > 0)\nSet<(N + ...)> zip(const Set<N>&... parts) { "
     "return {}; }",
     "auto zip(const Set<N>&... parts) -> Set<(N + ...)> {"),
    ("/// Loops.\ntemplate <class S>\n  requires requires(S s) { s.f(); }\nS loop(S) = delete;  // no\n"
     "template <A S> S loop(S);", "/** Loops. */ template <A S> S loop(S);"),
    ("int f();  // [rows]", "/** [rows] */ int f();"),
    ("/// Kinds.\nenum class Kind { one, two };", "/** Kinds. */\nenum class Kind { one, two };"),
    ("/// Kinds.\nenum class Kind {\n  one,  // the first\n  two,  // the second\n};", "one,  /**< the first */"),
    ("/// Of more.\nnamespace more {\n/// Sums.\nint f();\n}",
     "/** \\addtogroup ops_things */ /** \\{ */\n/** Sums. */"),
]
# bodies of which nothing is left
HIDDEN = [
    "namespace detail {\nint secret();\n}",
    "namespace {\nint secret();\n}",
    "// For the rooms of the library.\n/// Told.\nint secret();",
    "struct secret;",
    "/// No.\nint secret(int) = delete;",
    "template <class T> int Other<T>::secret() { return 0; }",
    "/// Any.\ntemplate <class T> struct A;\ntemplate <> struct A<int> {\n  int secret;\n};",
    "static_assert(secret == 1);",
    "struct secret {\n  static constexpr auto name = \"secret\";\n};",
]
# members of a class that are not shown
HIDDEN_MEMBERS = [
    " private:\n  int secret_ = 0;",
    " private:\n  int secret();",
    "  static constexpr auto ranges() { return secret; }",
    "  // For the rooms of the library.\n  int secret();",
    "  A(const A& secret);\n  A(A&& secret) noexcept;\n  A& operator=(const A& secret);\n  ~A() { secret(); }",
    "  friend bool operator==(const A&, const A& secret);",
    "  int f(int secret) override;",
    "  struct iterator {\n    int secret = 0;\n  };\n  iterator begin() const { return secret; }",
]
# a body, and what it lacks: the line and the names
LACKING = [
    ("int f();", [(1, "f")]),
    ("/// F.\nint f();\nint g();", [(3, "g")]),
    ("struct A {\n  int n;\n};", [(1, "A"), (2, "n")]),
    ("/// A.\nstruct A {\n  int a, b;\n};", [(3, "a", "b")]),
    ("/// Kinds.\nenum class Kind {\n  one,  // first\n  two,\n};", [(4, "two")]),
    ("template <> class A<int> {};", [(1, "A")]),
    ("enum class Kind { one };", [(1, "Kind"), (1, "one")]),
    ("template <class T>\nconcept Good = requires(T t) { t.f(); };", [(1, "Good")]),
    ("using Word = std::vector<int>;", [(1, "Word")]),
    ("template <class T> using Word = std::vector<T>;", [(1, "Word")]),
    ("/// A.\nstruct A {\n  // For the rooms of the library.\n  int f();\n\n protected:\n  int g();\n};", [(7, "g")]),
    ("/// A.\nstruct A {\n  explicit operator bool() const { return true; }\n  A operator()(int i = f(2)) const;\n};",
     [(3, "operator bool"), (4, "operator()")]),
    ("/// F.\nint f();\n\nnamespace more {\n/// G.\nint g();\n}", [(4, "more")]),
    ("inline constexpr int a = 1, b = 2;", [(1, "a", "b")]),
    ("/// A.\nstruct A {\n  std::function<int(int)> f = {};\n  int (*g)(int);\n};", [(3, "f"), (4, "g")]),
]


class Headers(unittest.TestCase):
    def test_what_is_shown(self):
        for body, wanted in SHOWN:
            with self.subTest(body):
                self.assertIn(wanted, rendered(body))

    def test_what_is_hidden(self):
        for body in HIDDEN + [f"/// A.\nstruct A {{\n{member}\n}};" for member in HIDDEN_MEMBERS]:
            with self.subTest(body):
                self.assertNotIn("secret", rendered(body))
                self.assertEqual([], undocumented(body))

    def test_what_has_no_comment(self):
        for body, wanted in LACKING:
            with self.subTest(body):
                self.assertEqual(wanted, undocumented(body))

    def test_lines_stay_in_place(self):
        for body in [body for body, _ in SHOWN + LACKING] + HIDDEN:
            with self.subTest(body):
                self.assertEqual(header(body).count("\n"), rendered(body).count("\n"))

    def test_every_public_header_can_be_read(self):
        for path in for_doxygen.public_headers():
            text = (for_doxygen.ROOT / path).read_text(encoding="utf-8")
            with self.subTest(path):
                names = for_doxygen.Names(text)
                self.assertTrue(names.shown or "For the rooms of the library" in text or names.hidden)


if __name__ == "__main__":
    unittest.main()
