"""Every public name of C++ is bound, or stands in left_out.txt with a reason; none is both."""
import json
import pathlib
import unittest

import gradus

LEFT_OUT = pathlib.Path(__file__).resolve().parents[1] / "generate/left_out.txt"
FACTS = json.loads((pathlib.Path(gradus.__file__).parents[1] / "generated/names.json").read_text(encoding="utf-8"))


def entries():
    """(names bound by hand, {name: reason}, {start of a header's path: reason})."""
    by_hand, names, rooms = {}, {}, {}
    for line in LEFT_OUT.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if " -> " in line:
            name, path = line.split(" -> ")
            by_hand[name] = path
            continue
        name, reason = line.split(": ", 1)
        (rooms if name.startswith("gradus/") else names)[name] = reason
    return by_hand, names, rooms


def attribute(path):
    value = gradus
    for part in path.split(".")[1:]:
        value = getattr(value, part)
    return value


class Names(unittest.TestCase):
    def setUp(self):
        self.by_hand, self.names, self.rooms = entries()
        self.bound = set(FACTS["bound"])

    def test_each_public_name_is_bound_or_listed(self):
        missing = [f"{name} of {header}" for name, header in FACTS["public"].items()
                   if name not in self.bound and name not in self.by_hand and name not in self.names
                   and not any(header.startswith(room) for room in self.rooms)]
        self.assertEqual(missing, [], "bind these, or say in python/generate/left_out.txt why not")

    def test_nothing_listed_is_bound(self):
        listed = set(self.by_hand) | set(self.names)
        self.assertEqual(sorted(listed & self.bound), [], "the generator binds these")

    def test_what_is_listed_exists(self):
        options = set(FACTS["left_out"])
        self.assertEqual(sorted((set(self.by_hand) | set(self.names)) - set(FACTS["public"]) - options), [])
        headers = set(FACTS["public"].values())
        for room in self.rooms:
            self.assertTrue(any(header.startswith(room) for header in headers), room)

    def test_what_is_bound_by_hand_is_there(self):
        for name, path in self.by_hand.items():
            with self.subTest(name=name):
                attribute(path)

    def test_options_that_cannot_be_given_are_listed(self):
        partly = {name for name in FACTS["left_out"] if "." in name}
        self.assertEqual(sorted(partly - set(self.names)), [])

    def test_methods_that_cannot_be_called_are_none(self):
        self.assertEqual([name for name in FACTS["left_out"] if "::" in name and "." not in name], [])

    def test_most_names_are_bound(self):
        ops = [name for name, header in FACTS["public"].items() if header.startswith("gradus/ops/")]
        self.assertGreater(len([name for name in ops if name in self.bound]), 0.9 * len(ops))


if __name__ == "__main__":
    unittest.main()
