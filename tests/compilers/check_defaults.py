"""Compares the defaults of the classes that bear Keras's names with keras_defaults.csv, a table of Keras 3.15:

    class     the name here
    argument  Keras's name of the argument
    keras     its default, as Python writes it
    field     the option or the parameter here
    reason    why the default is another one, if it is

A default that is neither Keras's nor explained is a finding, so is a row whose class or field is not in the headers. The
table was made from inspect.signature of Keras's classes, of the arguments that exist here, too; what has no default in
either is left out.

    check_defaults.py ROOT
"""
import csv
import pathlib
import re
import sys

import option_structs

HERE = pathlib.Path(__file__).parent
PARAMETERS = r"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)"


class Headers:
    def __init__(self, root):
        self.structs, _ = option_structs.read(root)
        self.text = "\n".join(option_structs.without_detail(option_structs.without_comments(header.read_text()))
                              for header in option_structs.public_headers(root))
        self.other_names = dict(re.findall(r"using (\w+) = (\w+)<\w+>;", self.text))

    def default_of(self, name, field):
        """The text of a default: of an option, of a parameter, or of the field of a class that is an aggregate."""
        name = name.split("::")[-1]
        for parameters in re.findall(r"\b%s\(%s\)" % (name, PARAMETERS), self.text):
            if options := re.search(r"(\w+)&? options\b", parameters):
                struct = self.structs.get(self.other_names.get(options[1], options[1]))
                for each in struct.fields if struct else []:
                    if each.name == field and each.default:
                        return each.default
            for parameter in option_structs.split_at_top(parameters, ","):
                if match := re.search(r"\b%s = (.*)$" % field, parameter.strip(), re.S):
                    return match[1].strip()
        return self.of_empty_call(name, field) or self.of_own_field(name, field)

    def of_empty_call(self, name, field):
        """X() : X(0.3) and X(double field)."""
        given = re.search(r"\b%s\(\) : %s\(%s\) \{\}" % (name, name, PARAMETERS), self.text)
        for parameters in re.findall(r"explicit %s\(%s\)" % (name, PARAMETERS), self.text) if given else []:
            for place, parameter in enumerate(option_structs.split_at_top(parameters, ",")):
                if re.search(r"\b%s$" % field, parameter.strip()):
                    return option_structs.split_at_top(given[1], ",")[place].strip()
        return None

    def of_own_field(self, name, field):
        match = re.search(r"struct %s(?: : \w+)? \{" % name, self.text)
        if not match:
            return None
        body = self.text[match.end():option_structs.end_of_braces(self.text, match.end()) - 1]
        return next((each.default for each in option_structs.fields_in(body) if each.name == field), None)


def number(text):
    try:
        return float(text.strip("{}() ").replace("'", ""))
    except ValueError:
        return None


def one_of_equals(text):
    """1 of (1, 1) and of {1, 1}."""
    numbers = set(re.findall(r"[-\d.e]+", text)) if text[:1] in ("(", "{") else set()
    return numbers.pop() if len(numbers) == 1 else text


def agrees(keras, ours):
    """True if both texts mean the same: None is an omitted default, (1, 1) is 1 twice, 'valid' is Padding::valid."""
    ours = re.sub(r"^std::(array|vector)<[^{(]*>", "", ours.strip()).replace("()", "{}")
    if keras == "','":
        return ours == "comma"  # as option_structs.py spells it
    if keras in ("True", "False"):
        return ours == keras.lower()
    if keras == "None":
        return ours in ("{}", "linear", "0", "ClassAverage::none")
    keras, ours = one_of_equals(keras), one_of_equals(ours)
    if number(keras) is not None:
        return number(ours) == number(keras)
    word = re.sub(r"\W", "", keras).lower()
    return word == re.sub(r"\(.*|.*::|\W", "", ours).lower() or (word == "" and ours == "{}")


def main():
    headers = Headers(pathlib.Path(sys.argv[1]))
    problems = []
    with open(HERE / "keras_defaults.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        ours = headers.default_of(row["class"], row["field"])
        where = f"{row['class']}: .{row['field']}"
        if ours is None:
            problems.append(f"{where}: the headers give no default")
        elif agrees(row["keras"], ours) == bool(row["reason"]):
            problems.append(f"{where} is {ours}, Keras's {row['argument']} is {row['keras']}" +
                            ("; leave out the reason" if row["reason"] else "; make it the same, or give a reason"))
    print("\n".join(problems) if problems else f"{len(rows)} defaults are Keras's or explained")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
