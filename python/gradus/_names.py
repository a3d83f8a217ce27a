"""Errors for names that a module, a function or an object does not have, with the nearest existing name."""
import functools
import inspect


def nearest(name, names):
    """The name of `names` that is most similar to `name`; None if none is similar, and for names of Python's protocols
    (`__x__`)."""
    if name.startswith("__"):
        return None
    import difflib  # only where a name is not known: imports take time
    known = [each for each in names if not each.startswith("_")]
    alike = {each.replace("_", "").lower(): each for each in known}  # EarlyStopping is early_stopping
    near = difflib.get_close_matches(name, known, n=1) or sorted(each for each in known if each.startswith(f"{name}_"))
    return alike.get(name.replace("_", "").lower()) or (near[0] if near else None)


def attribute_error(module, name, names):
    """The AttributeError for a name that `module` does not have, with the nearest existing one."""
    message = f"module {module!r} has no attribute {name!r}"
    near = nearest(name, names)
    if near:
        message += f"; did you mean {near!r}?"
    return AttributeError(message, name=name, obj=None)


def knows_keywords(f, label=None):
    """f, with a TypeError that has the nearest name for an unknown keyword, as generated ops have it. `label`: the name of f
    in it."""
    if f.__code__.co_flags & inspect.CO_VARKEYWORDS:
        return f

    @functools.wraps(f)
    def checked(*arguments, **options):
        try:
            return f(*arguments, **options)
        except TypeError as error:
            code = f.__code__
            known = [each for each in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if each not in ("self", "cls")]
            unknown = [each for each in options if each not in known]
            if not unknown or error.__traceback__.tb_next is not None:  # raised by the function itself
                raise
            near = nearest(unknown[0], known)
            place = label or f.__qualname__.split("<locals>.")[-1]
            raise TypeError(f"{place} has no argument `{unknown[0]}`; " + (
                f"did you mean `{near}`?" if near else f"it has {', '.join(known)}")) from None
    return checked


def methods_know_keywords(made):
    """The class, with knows_keywords for its public methods."""
    for name, value in list(vars(made).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            setattr(made, name, type(value)(knows_keywords(value.__func__)))
        elif inspect.isfunction(value):
            setattr(made, name, knows_keywords(value))
    return made


_ASSIGNS = {"assign": "v[i] = value", "assign_add": "v[i] = v[i] + value", "assign_sub": "v[i] = v[i] - value"}


def tensor_attribute_error(tensor, name):
    """__getattr__ of tensors: raises the AttributeError for a name that they do not have, with an alternative."""
    message = f"{type(tensor).__name__!r} object has no attribute {name!r}"
    if name in _ASSIGNS:
        message += f": a tensor never changes, and v[i] of a Variable v is one; {_ASSIGNS[name]} assigns elements of it"
    elif not name.startswith("_"):
        import numpy  # only where a name is not known
        if hasattr(numpy.ndarray, name):
            message += "; the array x.numpy() has it"
    raise AttributeError(message, name=name, obj=tensor)
