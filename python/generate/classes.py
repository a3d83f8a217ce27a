"""Classes of the library: layers, losses, optimizers, metrics and schedules, each a class of `nn` with its methods."""
import dataclasses

import docstrings
import emit
from forms import Slot

# Methods that Python calls. Others without arguments are attributes, as in Keras: model.variables, layer.kernel.
CALLED = {"result", "results", "result_names", "summary", "reset", "adapt"}

# Classes that make layers like the one that they are given, and share none.
COPIES = {"Bidirectional"}


@dataclasses.dataclass
class Method:
    name: str
    full_name: str
    forms: list
    docs: str
    is_attribute: bool


@dataclasses.dataclass
class Bound:
    name: str
    parent: str
    header: str
    forms: list  # of the constructor; none: Python cannot make one by itself
    methods: list
    docs: str

    @property
    def weight(self):
        return 6 + sum(2 + len(form.slots) for form in self.forms) + 4 * len(self.methods)

    def lines(self):
        lines = []
        if self.forms:
            lines += emit.callable_of(self.name, self.forms, f"gradus::{self.name}", "", "constructor")
            lines += [f"PyType_Slot init_{self.name}[] = {{{{Py_tp_init, reinterpret_cast<void*>("
                      f"&constructor_entry<call_{self.name}>)}}, {{0, nullptr}}}};"]
        for method in self.methods:
            target = "self" if method.name == "__call__" else f"self.{method.name}"
            lines += emit.callable_of(method.full_name, method.forms, target, "", self.name)
        return lines

    def binding(self):
        """Statements that add the class to `nn`."""
        bases = f"gradus::{self.name}" + (f", gradus::{self.parent}" if self.parent else "")
        init = f"nb::type_slots(init_{self.name}), " if self.forms else ""
        lines = [f'  {{ nb::class_<{bases}> type(nn, "{self.name}", {init}nb::dynamic_attr(), nb::is_weak_referenceable(), {emit.raw(self.docs)});']
        for is_attribute, add in ((False, "add_methods"), (True, "add_attributes")):
            chosen = [m for m in self.methods if m.is_attribute == is_attribute]
            if chosen:
                rows = "\n".join(emit.row("method_entry", m.full_name, m.docs, m.name) for m in chosen)
                lines.append(f"  static constexpr FunctionRow {add}_rows[] = {{\n{rows}\n  }};\n  {add}(type, {add}_rows);")
        return lines + ["  }"]


def with_training(form):
    """The form of a call of a layer, which may say the mode: training=True."""
    form.slots.append(Slot("training", "bool", "bool", False, "None", "True: as in training; by default as the call around it"))
    form.lines.append(f"const CalledMode mode(v, {len(form.slots) - 1});")
    return form


def methods_of(made, maker, parents):
    """Methods of a class. A call has the forms of the parents' calls, too, of which C++ says `using`."""
    bound, left_out = [], {}
    for method in made.methods:
        full_name = f"{made.name}::{method.name}"
        overloads = method.overloads
        if method.name == "__call__":
            overloads = overloads + [o for parent in parents for m in parent.methods if m.name == method.name
                                     for o in m.overloads]
        forms, reasons = maker.forms(overloads, drop_covered=True)
        if method.name == "__call__" and (made.base or made.name) == "Module":
            forms = [with_training(form) for form in forms]
        if not forms:
            left_out[full_name] = "; ".join(sorted(set(reasons)))
            continue
        is_attribute = len(forms) == 1 and not forms[0].slots and forms[0].result != "None" and method.name not in CALLED
        docs = docstrings.docstring(method.name, forms, "", "$self")
        bound.append(Method(method.name, full_name, forms, docstrings.body(docs) if is_attribute else docs, is_attribute))
    return bound, left_out


def parents_of(made, classes):
    parent = classes.get(made.parent)
    return [parent] + parents_of(parent, classes) if parent else []


def in_order(classes):
    """Parents before those that derive from them."""
    done, ordered = set(), []

    def add(made):
        if made.name in done:
            return
        done.add(made.name)
        if made.parent in classes:
            add(classes[made.parent])
        ordered.append(made)

    for made in classes.values():
        add(made)
    return ordered


def bound_classes(library, maker):
    """(all classes, {full name: why a class cannot be made or a method cannot be called})."""
    bound, left_out = [], {}
    for made in in_order(library.classes):
        if "<" in made.name:
            continue
        if made.name in COPIES:
            for parameter in [p for overload in made.constructors for p in overload.parameters if p.type == "gradus::Module"]:
                parameter.type = "Copied"
        forms, reasons = maker.forms(made.constructors, drop_covered=True, first_by_place=made.base == "Optimizer")
        if not forms and made.constructors:
            left_out[made.name] = "; ".join(sorted(set(reasons)))
        methods, without = methods_of(made, maker, parents_of(made, library.classes))
        left_out |= without
        parent = made.parent if made.parent in library.classes else ""
        docs = docstrings.docstring(made.name, forms, made.docs) if forms else made.docs
        bound.append(Bound(made.name, parent, made.header, forms, methods, docs))
    return bound, left_out

