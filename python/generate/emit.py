"""C++ of one name: the slots of its forms, the function that runs each, and the table of all."""

# The forms of predictions that losses and metrics are told.
PREDICTIONS = ("gradus::from_logits", "gradus::from_probabilities")


def raw(text):
    """A literal of C++, in parts that compilers take."""
    parts = [text[i:i + 8000] for i in range(0, len(text), 8000)] or [""]
    return " ".join(f'R"docs({part})docs"' for part in parts)


def identifier(full_name):
    return full_name.replace("::", "_")


def slot_lines(form):
    return [f'    {{"{s.name}", &kind_of<{s.type}>, {"true" if s.is_required else "false"}}},' for s in form.slots]


def call_of(form, target):
    """The expression that calls C++, once for each form of predictions where it has one."""
    place = next((k for k, a in enumerate(form.arguments) if a.startswith("FORM")), None)
    if place is None:
        return f"return {target}({', '.join(form.arguments)});"
    each = [f"return {target}({', '.join(form.arguments[:place] + [p] + form.arguments[place + 1:])});"
            for p in PREDICTIONS]
    return f"if (a{place}) {each[0]} {each[1]}"


def runner(name, form, target, scope, kind):
    """The function that runs a form. kind: function, constructor, or the class of a method."""
    lines = [f"PyObject* run_{name}([[maybe_unused]] const Values& v) {{"]
    if scope:
        lines.append(f"  using namespace gradus::{scope};")
    if kind not in ("function", "constructor"):
        lines.append(f"  auto& self = nb::cast<gradus::{kind}&>(nb::handle(v.self()));")
    lines += [f"  {line}" for line in form.lines]
    call = call_of(form, target)
    if kind == "constructor":
        made = f"gradus::{target.removeprefix('gradus::')}"
        lines.append(f"  return emplace<{made}>(v.self(), without_gil([&]() -> {made} {{ {call} }}));")
    elif form.result == "None":
        lines += [f"  without_gil([&] {{ {call.replace('return ', '')} }});", "  return nb::none().release().ptr();"]
    else:
        # An op is recorded; where the engine computes or waits, it gives up the interpreter's lock itself (decision 427).
        work = f"[&]() -> decltype(auto) {{ {call} }}"
        lines.append(f"  return given(({work})());" if kind == "function" else f"  return given(without_gil({work}));")
    return lines + ["}"]


def callable_of(full_name, forms, target, scope="", kind="function"):
    """All of one name; the table is `call_<name>`."""
    name = identifier(full_name)
    shown = full_name.split("::")[-1]
    lines = []
    for k, form in enumerate(forms):
        if form.slots:
            lines += [f"constexpr Slot slots_{name}_{k}[] = {{"] + slot_lines(form) + ["};"]
        lines += runner(f"{name}_{k}", form, target, scope, kind)
    lines.append(f"constexpr Form forms_{name}[] = {{")
    for k, form in enumerate(forms):
        slots = f"slots_{name}_{k}" if form.slots else "{}"
        lines.append(f'    {{{slots}, {form.positional}, &run_{name}_{k}, {raw(form.signature(shown))}}},')
    lines += ["};", f'constexpr Callable call_{name}{{"{shown}", forms_{name}}};']
    return lines


def row(entry, full_name, docs, name=None):
    """A row of a table of functions or methods."""
    return f'    {{"{name or full_name.split("::")[-1]}", &{entry}<call_{identifier(full_name)}>, {raw(docs)}}},'
