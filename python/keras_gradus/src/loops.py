"""Branches and loops as ops of the engine: bodies are traced once, whatever the number of iterations.

What a body assigns to keras.Variables is kept from it (StatelessScope). cond hands it on as further results; bodies of
loops may draw random numbers, but what they assign is lost, as on other backends that trace.
"""
import functools

import gradus
from gradus import ops
from keras.src import tree
from keras.src.backend.common.stateless_scope import StatelessScope, get_stateless_scope, in_stateless_scope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope


def _tensor(x, dtype=None):
    from keras_gradus.src.ops.core import convert_to_tensor
    return convert_to_tensor(x, dtype)


class _Scope(StatelessScope):
    """A stateless scope within another one, whose values hold here. It lists the Variables that are assigned."""

    def __init__(self):
        super().__init__()
        self.assigned = {}
        if in_stateless_scope():
            self.state_mapping.update(get_stateless_scope().state_mapping)

    def add_update(self, update):
        self.assigned[id(update[0])] = update[0]
        super().add_update(update)


def _is_traced(x):
    return getattr(x, "is_symbolic", False) or in_symbolic_scope()


# ---- branches

def cond(pred, true_fn, false_fn):
    """true_fn() or false_fn(). Where the boolean is known, that function alone is called; else both are traced."""
    pred = _tensor(pred, "bool")
    if not _is_traced(pred):
        return true_fn() if pred else false_fn()
    assigned = {}
    result = _traced_cond(pred, true_fn, false_fn, assigned, collect=True)
    if assigned:  # once more, with the values of these Variables among the results
        result = _traced_cond(pred, true_fn, false_fn, assigned, collect=False)
    return result


def _traced_cond(pred, true_fn, false_fn, assigned, collect):
    found = []

    def branch(f):
        with _Scope() as scope:
            result = f()
            values = [] if collect else [_tensor(variable.value) for variable in assigned.values()]
        if collect:
            assigned.update(scope.assigned)
        found.append(result)
        # None and what else is no tensor is in both branches the same.
        return tuple(_tensor(leaf) for leaf in tree.flatten(result) if leaf is not None) + tuple(values) + (_nothing(),)
    leaves = list(gradus.cond(pred, functools.partial(branch, true_fn), functools.partial(branch, false_fn)))
    if not collect:
        for variable, value in zip(assigned.values(), leaves[-1 - len(assigned):]):
            variable.assign(value)
    leaves = iter(leaves)
    return tree.map_structure(lambda leaf: None if leaf is None else next(leaves), found[0])


def _nothing():
    return gradus.constant(0)  # a branch without results has this one


def switch(index, branches, *operands):
    """branches[index](*operands); an index past the ends counts as that of the end."""
    index = _tensor(index, "int32")
    if not _is_traced(index):
        return branches[max(0, min(int(index), len(branches) - 1))](*operands)

    def chosen(first):
        if first == len(branches) - 1:
            return branches[first](*operands)
        return cond(index <= first, lambda: branches[first](*operands), lambda: chosen(first + 1))
    return chosen(0)


# ---- loops

def while_loop(cond, body, loop_vars, maximum_iterations=None):
    """Repeats loop_vars = body(*loop_vars) while cond(*loop_vars) holds, at most maximum_iterations times."""
    is_sequence = isinstance(loop_vars, (tuple, list))
    nest = tuple(loop_vars) if is_sequence else (loop_vars,)
    first = tuple(_tensor(leaf) for leaf in tree.flatten(nest))

    def holds(*state):
        with _Scope():
            return _tensor(cond(*tree.pack_sequence_as(nest, state)), "bool")

    def following(*state):
        with _Scope():
            found = body(*tree.pack_sequence_as(nest, state))
        leaves = tree.flatten(tuple(found) if is_sequence else (found,))
        return tuple(_tensor(leaf, before.dtype) for leaf, before in zip(leaves, first, strict=True))
    most = 0 if maximum_iterations is None else int(maximum_iterations)
    if maximum_iterations is not None and most <= 0:
        return loop_vars
    result = tree.pack_sequence_as(nest, gradus.while_loop(holds, following, first, most))
    return result if is_sequence else result[0]


def fori_loop(lower, upper, body_fun, init_val):
    """body_fun(i, value) for i from lower, until upper, with the value of the one before. i is int32, or has the dtype of
    the value if that is of integers, so that both can be added."""
    count = max(upper - lower, 0) if isinstance(lower, int) and isinstance(upper, int) else None
    dtypes = {_tensor(leaf).dtype for leaf in tree.flatten(init_val)}
    dtype = dtypes.pop() if len(dtypes) == 1 and isinstance(lower, int) else None
    first = _tensor(lower, dtype if dtype is not None and dtype.is_integer else None)
    return while_loop(lambda i, _: i < _tensor(upper, i.dtype), lambda i, value: (i + 1, body_fun(i, value)),
                      (first, init_val), maximum_iterations=count)[1]


class Packed:
    """Nests of tensors as one vector, or one matrix with a row for each, since the engine's loops take one tensor."""

    def __init__(self, nest, axis):
        self.nest, leaves = nest, [_tensor(leaf) for leaf in tree.flatten(nest)]
        self.dtypes = [leaf.dtype for leaf in leaves]
        self.shapes = [tuple(leaf.shape)[axis:] for leaf in leaves]
        self.dtype = self._common()
        rows = [tuple(leaf.shape)[:axis] for leaf in leaves]
        self.counts = [_product(shape) for shape in self.shapes]
        parts = [ops.cast(ops.reshape(leaf, (*row, count)), self.dtype) for leaf, row, count in zip(leaves, rows, self.counts)]
        self.tensor = parts[0] if len(parts) == 1 else ops.concat(parts, axis)

    def _common(self):
        """The dtype, or one that holds the numbers of all: integers past 2**53 are rounded where dtypes are mixed."""
        names = {dtype.name for dtype in self.dtypes}
        if len(names) == 1:
            return self.dtypes[0]
        is_narrow = names <= {"bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float32"}
        return gradus.float32 if is_narrow else gradus.float64

    def unpacked(self, packed, rows=()):
        """The nest of a row, or of the matrix with these sizes before."""
        parts = [packed] if len(self.counts) == 1 else ops.split(packed, sizes=self.counts, axis=len(rows))
        leaves = [ops.cast(ops.reshape(part, (*rows, *shape)), dtype)
                  for part, shape, dtype in zip(parts, self.shapes, self.dtypes)]
        return tree.pack_sequence_as(self.nest, leaves)


def _product(sizes):
    product = 1
    for size in sizes:
        product *= size
    return product


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """f(carry, row) gives the next carry and a result; gives the last carry and the stacked results."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    count = int(length) if xs is None else tree.flatten(xs)[0].shape[0]
    packed = None if xs is None else Packed(xs, 1)
    rows = ops.range(count, dtype="int32") if xs is None else packed.tensor
    first = tuple(_tensor(leaf) for leaf in tree.flatten(init))
    results = []

    def step(state, row):
        with _Scope():
            carry, result = f(tree.pack_sequence_as(init, state), None if xs is None else packed.unpacked(row))
        following = tuple(_tensor(leaf, before.dtype) for leaf, before in zip(tree.flatten(carry), first, strict=True))
        results[:] = [None if result is None else Packed(result, 0)]
        return following, _nothing() if result is None else results[0].tensor
    last, stacked = gradus.scan(step, first, ops.reverse(rows, [0]) if reverse else rows)
    carry = tree.pack_sequence_as(init, last)
    if results[0] is None:
        return carry, None
    return carry, results[0].unpacked(ops.reverse(stacked, [0]) if reverse else stacked, (count,))


def map(f, xs):
    """The stacked results of f of each row, one after another."""
    return scan(lambda carry, row: (carry, f(row)), 0, xs)[1]


def vectorized_map(function, elements):
    """The stacked results of function of each row, as one batched program."""
    packed, results = Packed(elements, 1), []

    def of_row(row):
        results[:] = [Packed(function(packed.unpacked(row)), 0)]
        return results[0].tensor
    stacked = gradus.vectorized_map(of_row, packed.tensor)
    return results[0].unpacked(stacked, (packed.tensor.shape[0],))
