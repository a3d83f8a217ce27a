"""tf.function, and functions of functions: branches, loops, maps over rows."""
import builtins
import contextlib
import functools
import inspect
import sys
import time

from .. import Function, _native, cond as _cond, function as _function, scan as _scan, vectorized_map as _vectorized
from .. import while_loop as _while_loop
from .._warnings import warn
from ..datasets import CallsPython
from . import nest
from .debugging import Assert as _require
from .on_host import _stack, is_on_host
from .ragged import RaggedTensor, RaggedTensorSpec, stack
from .shapes import TensorSpec
from .tensors import convert_to_tensor, is_tensor

__all__ = ["ConcreteFunction", "cond", "case", "control_dependencies", "timestamp", "executing_eagerly", "foldl",
           "foldr", "function", "group", "init_scope", "inside_function", "map_fn", "no_op", "numpy_function", "print",
           "py_function", "scan", "switch_case", "vectorized_map", "while_loop"]


# ---- tf.function

class _Method(functools.partial):
    """A compiled function as a method of an object; a partial, which C calls."""

    __self__ = property(lambda self: self.args[0], doc="The object.")
    __func__ = property(lambda self: self.func, doc="The function of the class.")

    def __getattr__(self, name):
        return getattr(self.func, name)

    def get_concrete_function(self, *args, **kwargs):
        """The function for these TensorSpecs, or for the specs of these tensors, with the object before them."""
        specs = args or getattr(self.func, "input_signature", None) or ()
        return _concrete(_with_name(
            self.func.python_function, functools.partial(self.func.python_function, self.args[0])), specs, kwargs)


def _with_name(f, partial):
    """The partial with the name and docstring of f."""
    partial.__name__, partial.__doc__ = getattr(f, "__name__", "function"), f.__doc__
    return partial


def _as_method(self, instance, owner=None):
    return self if instance is None else _Method(self, instance)


Function.__get__ = _as_method


class _WithSignature:
    """A function that is compiled for one signature: arguments in place of a spec become tensors. The signature of a method
    does not contain its object."""

    def __init__(self, f, input_signature):
        functools.update_wrapper(self, f)
        self.python_function, self.input_signature = f, tuple(input_signature)
        self._compiled = _function(f, input_signature=nest.flatten(list(self.input_signature)))
        self.explain = self._compiled.explain
        self._parameters = inspect.signature(f, follow_wrapped=False)

    __get__ = _as_method

    def __call__(self, *args, **kwargs):
        if not kwargs and self._are_tensors(args):
            return self._compiled(*args)
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        given = list(bound.args)
        before = max(len(given) - len(self.input_signature), 0)  # self of a method
        for i, spec in enumerate(self.input_signature[:len(given) - before]):
            given[before + i] = _as_spec(spec, given[before + i])
        return self._compiled(*given, **bound.kwargs)

    def _are_tensors(self, args):
        """True if all arguments, apart from the object of a method, are tensors, so that none has to be converted."""
        first = len(args) - len(self.input_signature)
        return first in (0, 1) and all(type(arg) is _native.Tensor for arg in args[first:])

    def get_concrete_function(self, *args, **kwargs):
        """The function for its signature, or for these specs."""
        return _concrete(self.python_function, args or self.input_signature, kwargs)


class ConcreteFunction:
    """A function for one signature."""

    def __init__(self, f, specs, options):
        self._call = _WithSignature(_with_name(f, functools.partial(f, **options)) if options else f, specs)
        self.name = getattr(f, "__name__", "function")
        self.structured_input_signature = (tuple(specs), dict(options))
        self.inputs = nest.flatten(list(specs))
        self.explain = self._call.explain

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        if name in ("graph", "variables", "trainable_variables", "captured_inputs", "outputs", "structured_outputs",
                    "output_shapes", "output_dtypes"):
            raise AttributeError(f"'ConcreteFunction' object has no attribute {name!r}: it is traced when it is first called; "
                                 "explain() shows the program", name=name, obj=self)
        raise AttributeError(f"'ConcreteFunction' object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self):
        return f"<ConcreteFunction {self.name}{tuple(self.inputs)}>"


def _concrete(f, args, kwargs):
    """A function for the specs of its arguments; tensors stand for their specs, other values stay as they are."""
    def spec_of(arg):
        if isinstance(arg, _native.TensorSpec):
            return arg
        return TensorSpec.from_tensor(convert_to_tensor(arg))
    parameters = inspect.signature(f, follow_wrapped=False)
    try:
        bound = parameters.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{getattr(f, '__name__', 'function')}: get_concrete_function: {error}") from None
    specs, options = [], {}
    for name, value in bound.arguments.items():
        leaves = nest.flatten(value)
        if any(isinstance(leaf, _native.TensorSpec) or is_tensor(leaf) for leaf in leaves):
            specs.append(nest.map_structure(spec_of, value))
        else:
            options[name] = value
    return ConcreteFunction(f, specs, options)


def _get_concrete_function(self, *args, **kwargs):
    """The function for these TensorSpecs, or for the specs of these tensors."""
    return _concrete(self.python_function, args, kwargs)


Function.get_concrete_function = _get_concrete_function


def _as_spec(spec, value):
    if nest.is_nested(spec):
        return nest.map_structure(_as_spec, spec, value, check_types=False)
    return value if is_tensor(value) else convert_to_tensor(value, spec.dtype)


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False,
             experimental_implements=None, experimental_autograph_options=None, experimental_attributes=None,
             experimental_relax_shapes=None, experimental_compile=None, experimental_follow_type_hints=None):
    """func as a compiled function, traced once for each signature of a call. A decorator, with and without options.

    `if`, `while` and `and` on tensors work without AutoGraph, and every function is compiled, so autograph, jit_compile and
    reduce_retracing change nothing. Python's numbers are structure: each value has a program; after eight of them there is a
    warning.
    """
    def compiled(f):
        return _function(f) if input_signature is None else _WithSignature(f, input_signature)
    return compiled if func is None else compiled(func)


_call = Function.__call__
_eager = [False]


def run_functions_eagerly(run_eagerly):
    """Sets whether functions run in Python, op by op, for a debugger, instead of compiled."""
    _eager[0] = bool(run_eagerly)
    Function.__call__ = (lambda self, *args, **kwargs: self.python_function(*args, **kwargs)) if run_eagerly else _call


def functions_run_eagerly():
    """True after run_functions_eagerly(True)."""
    return _eager[0]


def executing_eagerly():
    """False while a function is traced."""
    return not _native._is_traced()


inside_function = _native._is_traced


# ---- branches and loops

def cond(pred, true_fn=None, false_fn=None, name=None):
    """true_fn() if the boolean is true, else false_fn(). While a function is traced, both are traced, and each call computes
    one."""
    if is_tensor(pred) and convert_to_tensor(pred).is_symbolic:
        return _cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """The result of the function of the first true boolean, or of default. InvalidArgumentError if none is true and there is
    no default, and with `exclusive` if two are true."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise ValueError("case: there is no pair of a boolean and a function")
    counts = _native.ops.add_n([_native.ops.cast(pred, "int32") for pred, _ in pairs])
    if exclusive:
        _require(counts <= 1, ["case: several booleans hold, and exclusive=True says that at most one does"])
    if default is None:
        _require(counts >= 1, ["case: no boolean holds, and there is no default"])
        *pairs, (_, default) = pairs
    result = default
    for pred, f in reversed(pairs):
        result = functools.partial(cond, pred, f, result)
    return result()


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """The result of the function of this number; for a number without a function, that of default or of the last function."""
    numbered = list(branch_fns.items() if isinstance(branch_fns, dict) else
                    branch_fns if isinstance(branch_fns[0], tuple) else enumerate(branch_fns))
    numbered = sorted(numbered, key=lambda pair: pair[0])
    pairs = [(convert_to_tensor(branch_index) == number, f) for number, f in numbered]
    return case(pairs, default=numbered[-1][1] if default is None else default)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    """Repeats loop_vars = body(*loop_vars) while cond(*loop_vars) holds: as one op while a function is traced, else in
    Python, where sizes may change."""
    if maximum_iterations is not None and int(maximum_iterations) <= 0:
        return nest.map_structure(convert_to_tensor, loop_vars)
    if _native._is_traced():
        tensors = nest.map_structure(convert_to_tensor, loop_vars)
        return _while_loop(cond, body, tensors, 0 if maximum_iterations is None else int(maximum_iterations))
    is_tuple, left = isinstance(loop_vars, tuple), maximum_iterations
    state = nest.map_structure(convert_to_tensor, list(loop_vars))
    while (left is None or left > 0) and cond(*state):
        found = body(*state)
        state = list(found) if isinstance(found, (list, tuple)) and len(state) == len(found) else [found]
        left = None if left is None else left - 1
    return tuple(state) if is_tuple else state


def _rows(elems):
    """The nests of row 0, row 1 ... of all tensors."""
    tensors = nest.map_structure(lambda each: each if isinstance(each, RaggedTensor) else convert_to_tensor(each), elems)
    count = len(nest.flatten(tensors)[0])
    return [nest.map_structure(lambda t, i=i: t[i], tensors) for i in range(count)]


def _stacked(results):
    if not results:
        raise ValueError("there are no rows, so that the function was never called: give it at least one")
    return nest.map_structure(lambda *parts: (_stack if is_on_host(parts) else _native.ops.stack)(list(parts), 0), *results)


def _is_one_tensor(*nests):
    return all(not nest.is_nested(each) for each in nests)


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True, name=None,
           fn_output_signature=None):
    """The stacked results of fn(row) for each row; for a RaggedTensor they are rows of any length. vectorized_map computes all
    rows at once. ValueError without rows."""
    spec = dtype if fn_output_signature is None else fn_output_signature
    if isinstance(elems, RaggedTensor) and (spec is None or isinstance(spec, RaggedTensorSpec)):
        return stack([fn(row) for row in elems])
    found = _stacked([fn(row) for row in _rows(elems)])
    if spec is None:
        return found
    return nest.map_structure(lambda x, s: _native.ops.cast(x, getattr(s, "dtype", s)), found, spec)


class _IsNested(Exception):
    """The error of a function that gave several tensors instead of one."""


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """The stacked results of fn(row) for each row: one batched program if fn takes and gives one tensor, else map_fn."""
    if not _is_one_tensor(elems):
        return map_fn(fn, elems)

    def of_row(row):
        found = fn(row)
        if nest.is_nested(found):
            raise _IsNested
        return found
    try:
        return _vectorized(of_row, convert_to_tensor(elems))
    except _IsNested:  # several results, which one program does not have
        return map_fn(fn, elems)


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    """The stacked states of state = fn(state, row); the first state is the initializer, or row 0."""
    if reverse:
        elems = nest.map_structure(lambda t: _native.ops.reverse(t, [0]), elems)
    found = _states(fn, elems, initializer)
    return nest.map_structure(lambda t: _native.ops.reverse(t, [0]), found) if reverse else found


def _states(fn, elems, initializer):
    if initializer is not None and _is_one_tensor(elems, initializer):
        def step(state, row):
            state = fn(state, row)
            return state, state
        return _scan(step, convert_to_tensor(initializer), convert_to_tensor(elems))[1]
    rows = _rows(elems)
    state, states = (rows[0], [rows[0]]) if initializer is None else (initializer, [])
    for row in rows[1 if initializer is None else 0:]:
        state = fn(state, row)
        states.append(state)
    return _stacked(states)


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """The last state of state = fn(state, row); the first state is the initializer, or row 0."""
    rows = _rows(elems)
    return functools.reduce(fn, rows) if initializer is None else functools.reduce(fn, rows, initializer)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """foldl from the last row to the first."""
    rows = _rows(elems)[::-1]
    return functools.reduce(fn, rows) if initializer is None else functools.reduce(fn, rows, initializer)


# ---- Python within programs

def py_function(func=None, inp=None, Tout=None, name=None):
    """func(*inp) in Python, as tensors of the dtypes Tout. UnknownValueError in a traced function; a function of tf.data that
    calls it runs in Python for each element."""
    if _native._is_traced():
        raise CallsPython("py_function: Python does not run in a compiled function; call it outside of it")
    found = func(*[convert_to_tensor(x) for x in inp or ()])
    if Tout is None or isinstance(Tout, (list, tuple)) and not Tout:
        return []
    if not isinstance(Tout, (list, tuple)):
        return _as_output(found, Tout)
    return [_as_output(x, t) for x, t in zip(found if isinstance(found, (list, tuple)) else [found], Tout, strict=True)]


def _as_output(value, spec):
    return _native.ops.cast(convert_to_tensor(value), spec.dtype if isinstance(spec, TensorSpec) else spec)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """As py_function; func receives arrays of NumPy."""
    return py_function(lambda *tensors: func(*[t.numpy() for t in tensors]), inp, Tout)


_told = set()


def _tell_once(place, message):
    if place not in _told:
        _told.add(place)
        warn(message)


def print_(*inputs, output_stream=None, summarize=3, sep=" ", end="\n", name=None):
    """Writes to standard error, as TensorFlow does. In a traced function it writes only while the function is traced, without
    values."""
    if _native._is_traced():
        _tell_once("print", "tf.print in a traced function writes once, while it is traced: return what is to be printed")
    builtins.print(*inputs, sep=sep, end=end, file=output_stream or sys.stderr)


def group(*inputs, **kwargs):
    """No effect: ops run in order."""


@contextlib.contextmanager
def control_dependencies(control_inputs):
    """A context without effect: changes of state happen in the order of the program."""
    yield


@contextlib.contextmanager
def init_scope():
    """A context without effect: there are no graphs. Make Variables and tables before a function is traced."""
    yield


def timestamp(name=None):
    """Seconds since 1970, a float64 scalar. In a traced function it is the time of the trace."""
    if _native._is_traced():
        _tell_once("timestamp", "tf.timestamp in a traced function is the time when it is traced: call it outside")
    return convert_to_tensor(time.time(), _native.float64)


def no_op(name=None):
    """Nothing."""


globals()["print"] = print_
