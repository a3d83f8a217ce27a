"""Names that a module does not have."""


def attribute_error(module, name, names):
    """The AttributeError for a name that `module` does not have, with the nearest one that it has."""
    message = f"module {module!r} has no attribute {name!r}"
    import difflib  # only where a name is not known: imports take time
    near = difflib.get_close_matches(name, [known for known in names if not known.startswith("_")], n=1)
    if near:
        message += f"; did you mean {near[0]!r}?"
    return AttributeError(message, name=name, obj=None)
