"""tf.nest: dicts, lists, tuples, named tuples and dataclasses of leaves. Dicts are visited in the order of sorted keys."""
from ..nest import assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as  # noqa: F401
