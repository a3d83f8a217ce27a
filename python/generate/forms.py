"""Overloads as forms of Python: options flattened to keyword arguments, duplicates dropped."""
import dataclasses
import re

from conversions import Unsupported

# The struct of a call's options has one of these as its only content.
NAMED_AXES = ("gradus::NamedAxis", "gradus::NamedAxes")


@dataclasses.dataclass
class Slot:
    name: str
    type: str  # of Argument<>
    annotation: str
    is_required: bool
    default: str  # as a signature shows it
    docs: str


@dataclasses.dataclass
class Form:
    overload: object
    slots: list
    positional: int
    result: str  # the annotation
    lines: list  # C++ that makes the arguments
    arguments: list  # C++ expressions
    left_out: list  # (field, type) of options that Python cannot give

    def is_same_call(self, other):
        """True if `other` has the same arguments, of which this form needs no more: {.axis = 1} beside an axis."""
        def named(form):
            return [(s.name, re.sub(r"std::optional<(.*)>", r"\1", s.type)) for s in form.slots]
        return named(self) == named(other) and all(o.is_required or not s.is_required
                                                   for s, o in zip(self.slots, other.slots))

    def signature(self, name, first=""):
        """Python's text of it: conv2d(x, filters, *, strides=None)."""
        parts = [first] if first else []
        for k, slot in enumerate(self.slots):
            if k == self.positional:
                parts.append("*")
            parts.append(slot.name if slot.is_required else f"{slot.name}={slot.default}")
        return f"{name}({', '.join(parts)})"

    def covers_names(self, longest):
        """True if its arguments are the first ones of `longest`, or some of those that may be left out."""
        names = [s.name for s in longest.slots]
        return [s.name for s in self.slots] == [n for n in names if n in {s.name for s in self.slots}] and \
            all(not s.is_required for s in longest.slots if s.name not in {o.name for o in self.slots})

    def covers(self, other):
        """True if every call of `other` is one of this form with the same meaning."""
        mine = {s.name: s for s in self.slots}
        return (all(s.name in mine and mine[s.name].type == s.type and mine[s.name].is_required == s.is_required
                    for s in other.slots)
                and all(s.name in {o.name for o in other.slots} for s in self.slots if s.is_required)
                and [s.name for s in other.slots[:other.positional]] ==
                [s.name for s in self.slots[:self.positional]][:other.positional])


class Maker:
    """Makes the forms of functions and classes."""

    def __init__(self, conversions):
        self.conversions = conversions

    def form(self, overload, first_by_place=False):
        """Unsupported if an argument that must be given, or the result, is of a type that Python cannot have."""
        slots, lines, arguments, left_out, late = [], [], [], [], []
        for k, parameter in enumerate(overload.parameters):
            if parameter.fields is not None:
                self.add_options(k, parameter, slots, late, lines, left_out, first_by_place)
            else:
                self.add_parameter(k, parameter, slots, lines)
            arguments.append(self.expression(k, parameter))
        form = Form(overload, slots + late, len(slots), "", [], arguments, left_out)
        form.lines = [line.format(**{s.name: i for i, s in enumerate(form.slots)}) for line in lines]
        form.result = self.conversions.result(overload.result) if overload.result else ""
        return form

    def add_parameter(self, k, parameter, slots, lines):
        made, annotation = self.conversions.argument(parameter.type)
        default = "" if parameter.is_required else self.conversions.shown_default(parameter)
        slots.append(Slot(parameter.name, made, annotation, parameter.is_required, default, parameter.docs))
        index = "{" + parameter.name + "}"
        if parameter.is_required:
            lines.append(f"auto a{k} = v.get<{made}>({index});")
        else:
            value = parameter.default.replace("{", "{{").replace("}", "}}")
            lines += [f"{made} a{k} = {value};", f"v.set<{made}>({index}, a{k});"]

    def add_options(self, k, parameter, slots, late, lines, left_out, first_by_place):
        lines.append(f"{parameter.type} a{k}{{{{}}}};")
        for n, field in enumerate(parameter.fields):
            if any(s.name == field.name for s in slots + late):
                continue  # it is an argument, too, and may be given once
            try:
                made, annotation = self.conversions.argument(field.type)
            except Unsupported as error:
                if field.is_required:
                    raise
                left_out.append((field.name, str(error)))
                continue
            is_required = field.is_required and field.type != "gradus::Tensor"
            is_required = is_required or parameter.type in NAMED_AXES
            default = "" if is_required else self.conversions.shown_default(field) if field.default else "None"
            slot = Slot(field.name, made, annotation, is_required, default, field.docs)
            # Required arguments may be given by place.
            (slots if (is_required or (first_by_place and n == 0)) and not late else late).append(slot)
            lines.append(f"v.set<{made}>({{{field.name}}}, a{k}.{field.name});")

    @staticmethod
    def expression(k, parameter):
        if parameter.type == "PredictionForm":
            return f"FORM{k}"
        if parameter.type == "char *":
            return f"a{k}.c_str()"
        return f"std::move(a{k})"

    def forms(self, overloads, drop_covered=False, first_by_place=False):
        """(forms, reasons why overloads have none)."""
        made, reasons = [], []
        for overload in overloads:
            if overload is None:
                reasons.append("a template")
                continue
            try:
                made.append(self.form(overload, first_by_place))
            except Unsupported as error:
                reasons.append(str(error))
        forms = []
        for form in sorted(made, key=lambda form: sum(s.is_required for s in form.slots)):
            if not any(kept.is_same_call(form) for kept in forms):
                forms.append(form)
        forms.sort(key=made.index)
        if drop_covered:
            forms = [f for f in forms if not any(g is not f and len(g.slots) > len(f.slots) and g.covers(f) for g in forms)]
        return sorted(forms, key=lambda form: len(form.slots)), reasons
