"""keras.ops of linear algebra: Keras's, and derivatives along a tangent."""
import gradus as _gradus
from gradus import ops as _ops
from keras.src import tree as _tree

from keras_gradus.src import keras_text
from keras_gradus.src.loops import Packed as _Packed

keras_text.run(globals())


def jvp(fun, primals, tangents, has_aux=False):
    """fun(*primals), its derivative along the tangents, and what fun gives beside it with has_aux."""
    if len(_tree.flatten(primals)) != len(_tree.flatten(tangents)):
        raise ValueError(f"jvp: primals and tangents are nests of one kind, not {primals} and {tangents}")
    at, found = _Packed(primals, 0), []
    along = _Packed(_tree.map_structure(lambda x, like: _ops.cast(x, like.dtype), tangents, primals), 0)

    def packed(x):
        result = fun(*at.unpacked(x))
        found[:] = [_Packed(result[0] if has_aux else result, 0), result[1] if has_aux else None]
        return found[0].tensor
    value, tangent = _gradus.jvp(packed, at.tensor, along.tensor)
    results = found[0].unpacked(value), found[0].unpacked(tangent)
    return (*results, found[1]) if has_aux else results
