"""Names that a module does not have."""


def attribute_error(module, name, names):
    """The AttributeError for a name that `module` does not have, with the nearest one that it has."""
    message = f"module {module!r} has no attribute {name!r}"
    import difflib  # only where a name is not known: imports take time
    known = [each for each in names if not each.startswith("_")]
    alike = {each.replace("_", "").lower(): each for each in known}  # EarlyStopping is early_stopping
    near = [alike[name.replace("_", "").lower()]] if name.replace("_", "").lower() in alike else \
        difflib.get_close_matches(name, known, n=1)
    if near:
        message += f"; did you mean {near[0]!r}?"
    return AttributeError(message, name=name, obj=None)


_ASSIGNS = {"assign": "v[i] = value", "assign_add": "v[i] = v[i] + value", "assign_sub": "v[i] = v[i] - value"}


def tensor_attribute_error(tensor, name):
    """__getattr__ of tensors: the AttributeError for a name that they do not have, with what does its work."""
    message = f"{type(tensor).__name__!r} object has no attribute {name!r}"
    if name in _ASSIGNS:
        message += f": a tensor never changes, and v[i] of a Variable v is one; {_ASSIGNS[name]} assigns elements of it"
    elif not name.startswith("_"):
        import numpy  # only where a name is not known
        if hasattr(numpy.ndarray, name):
            message += "; the array x.numpy() has it"
    raise AttributeError(message, name=name, obj=tensor)
