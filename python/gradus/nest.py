"""Nests: dicts, lists, tuples, named tuples and dataclasses of leaves, at any depth. Dicts are visited in the order of sorted
keys."""
import copy
import dataclasses


def _is_named_tuple(structure):
    return isinstance(structure, tuple) and hasattr(structure, "_fields")


def _is_dataclass(structure):
    return dataclasses.is_dataclass(structure) and not isinstance(structure, type)


def is_nested(structure):
    """True for a container whose elements are parts of the nest."""
    return isinstance(structure, (list, tuple, dict)) or _is_dataclass(structure)


def _keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types
        return list(mapping)


def _items(structure):
    """Keys and values of one container, in order."""
    if isinstance(structure, dict):
        return [(key, structure[key]) for key in _keys(structure)]
    if _is_dataclass(structure):
        return [(field.name, getattr(structure, field.name)) for field in dataclasses.fields(structure)]
    return list(enumerate(structure))


def _with_items(structure, values):
    """A container of the same kind with other values, in the order of _items."""
    if isinstance(structure, dict):
        made = copy.copy(structure)
        made.update(zip(_keys(structure), values))
        return made
    if _is_dataclass(structure):
        made = copy.copy(structure)
        for field, value in zip(dataclasses.fields(structure), values):
            object.__setattr__(made, field.name, value)
        return made
    if _is_named_tuple(structure):
        return structure._make(values)
    return tuple(values) if isinstance(structure, tuple) else list(values)


def flatten(structure, expand_composites=False):
    """The list of the leaves; for a leaf, a list of it alone."""
    if not is_nested(structure):
        return [structure]
    return [leaf for _, value in _items(structure) for leaf in flatten(value)]


def _packed(structure, leaves):
    if not is_nested(structure):
        return next(leaves)
    return _with_items(structure, [_packed(value, leaves) for _, value in _items(structure)])


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """A nest of the form of `structure` with these leaves. ValueError for another number of them."""
    leaves, wanted = list(flat_sequence), len(flatten(structure))
    if len(leaves) != wanted:
        raise ValueError(f"pack_sequence_as: the structure has {wanted} leaves, the sequence {len(leaves)}")
    return _packed(structure, iter(leaves))


def _kind(structure):
    return dict if isinstance(structure, dict) else type(structure)


def _assert_same(a, b, check_types, path):
    if is_nested(a) != is_nested(b):
        raise ValueError(f"the structures differ at {path or 'the top'}: {a!r} and {b!r}")
    if not is_nested(a):
        return
    if check_types and _kind(a) is not _kind(b):
        raise TypeError(f"the structures differ at {path or 'the top'}: a {type(a).__name__} and a {type(b).__name__}")
    left, right = _items(a), _items(b)
    if [key for key, _ in left] != [key for key, _ in right]:
        raise ValueError(f"the structures differ at {path or 'the top'}: {[k for k, _ in left]} and {[k for k, _ in right]}")
    for (key, x), (_, y) in zip(left, right):
        _assert_same(x, y, check_types, f"{path}[{key!r}]")


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """ValueError if two nests differ in keys or lengths, TypeError if they differ in the types of containers."""
    _assert_same(nest1, nest2, check_types, "")


def map_structure(func, *structure, **kwargs):
    """The nest of func(leaf of each structure). ValueError or TypeError if the structures differ."""
    if not callable(func):
        raise TypeError(f"map_structure: func is called, but a {type(func).__name__} cannot be")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    if kwargs or not structure:
        raise ValueError(f"map_structure: takes structures and check_types, not {sorted(kwargs)}" if kwargs else
                         "map_structure: no structure is given")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])
