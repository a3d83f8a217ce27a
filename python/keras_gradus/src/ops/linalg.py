"""keras.ops of linear algebra: Keras's, and derivatives along a tangent."""
import gradus as _gradus
from gradus import ops as _ops
from keras.src import tree as _tree

from keras_gradus.src import keras_text
from keras_gradus.src.loops import Packed as _Packed, fori_loop as _fori_loop
from keras_gradus.src.ops.core import convert_to_tensor as _convert

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


def lu_factor(a):
    """Triangular factors in one matrix, and the rows that each step swaps its own with, as LAPACK has them."""
    a = _convert(a)
    found = _ops.lu(a)
    order = _pivots(found[1])
    return found[0], order[..., :min(a.shape[-2:])]


def _pivots(order):
    """The swaps, one after another, that put rows into this order [..., rows]."""
    places = _ops.range(order.shape[-1], dtype="int32")

    def swap(i, state):
        rows, pivots = state
        row = _ops.expand_dims(_ops.gather(order, i, axis=-1), -1)
        place = _ops.expand_dims(_ops.argmax(_ops.cast(_ops.equal(rows, row), "int32"), axis=-1, output_type="int32"), -1)
        moved = _ops.expand_dims(_ops.gather(rows, i, axis=-1), -1)
        is_here = _ops.equal(places, i)
        rows = _ops.where(is_here, row, _ops.where(_ops.equal(places, place), moved, rows))
        return rows, _ops.where(is_here, place, pivots)
    first = _ops.broadcast_to(places, order.shape)
    return _fori_loop(0, order.shape[-1], swap, (first, _ops.zeros_like(first)))[1]
