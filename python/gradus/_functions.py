"""gradus.function, as a decorator and as a call."""
import functools

from . import _native
from ._names import knows_keywords


@knows_keywords
def function(f=None, *, name=None, input_signature=None, max_variants=_native.most_variants, open_sizes=True,
             run_eagerly=False, profile=False, max_bytes=0, disable=()):
    """f as a compiled function: traced once for each kind of call, with forward, backward and updates in one program.

    Tensors, arrays and nests of them (dicts, lists, tuples, named tuples, dataclasses) are traced. Python's numbers, texts and
    None are structure: each value has a program; Variables and other objects count by identity. `if`, `while` and `and` on
    tensors work: each path is traced when a call first takes it. Other effects of the Python code happen only while it is
    traced.

    Args:
        f: the function; without it this is a decorator.
        name: in reports and errors.
        input_signature: TensorSpecs of all tensors; one program then serves every size that is None.
        max_variants: largest number of programs; past it the least recently used one is dropped.
        open_sizes: False makes a program for each size.
        run_eagerly: True runs f op by op, for a debugger.
        profile: True measures the time of each kernel, which explain() reports.
        max_bytes: a budget in bytes for the values that a call keeps between kernels; 0 is none. ResourceExhaustedError if it
            is too small.
        disable: names of compiler passes to leave out, such as "fuse".
    """
    def compiled(body):
        return _native._function(body, name, list(input_signature or ()), max_variants, open_sizes, run_eagerly, profile,
                                 max_bytes, list(disable))
    return compiled if f is None else compiled(f)


def explain(f):
    """The report of a compiled function: kernels, memory, variants, and the reasons of retraces."""
    return f.explain()


@knows_keywords
def export_objects(stem, steps, *, instruction_set="", target="", weights=None):
    """Writes several compiled functions as one object file with one state, stem.o, and a header in C, stem.h: a program
    trains and predicts with the same weights.

        gradus.export_objects("net", {"train": (train_step, [gradus.TensorSpec((64, 16)), gradus.TensorSpec((64,), "int32")]),
                                      "predict": (predict, [gradus.TensorSpec((1, 16))])})

    Args:
        stem: path of the files without suffix; its last part begins the functions' names in C: net_train, net_predict.
        steps: dict from names to (function, TensorSpecs of known sizes), for functions of gradus.function that take tensors
            and capture all other values; a function alone if its input_signature has all sizes.
        instruction_set: "avx2" or "avx512"; else that of this processor.
        target: another kind of machine, such as "aarch64-linux-gnu".
        weights: a file for the values of Variables, which are in the object otherwise.

    Returns the paths of the object, of the header, and of the file of weights or None. InvalidArgumentError for names that
    cannot be part of a C identifier, and for sizes that are not known.
    """
    named = []
    for name, given in dict(steps).items():
        step, specs = given if isinstance(given, (tuple, list)) else (given, ())
        if not isinstance(step, _native.Function):
            raise TypeError(f"export_objects: {name!r} is a {type(step).__name__}: give a gradus.function, or one with a list of "
                            "TensorSpecs")
        named.append((name, step, list(specs)))
    return _native._export_objects(stem, named, instruction_set, target, weights)


@knows_keywords
def load_object_state(file, header, variables):
    """Assigns the state of an exported step, the bytes of its struct that a program has written, to Variables of these
    names, and continues its random numbers.

    Args:
        file: the bytes, as fwrite of sizeof the struct writes them.
        header: the header of the step.
        variables: those of the model and of the optimizer, both built: model.variables + optimizer.variables.

    All or nothing: DataLossError if the file has another size, InvalidArgumentError for a field that no Variable has.
    """
    _native._load_object_state(file, header, list(variables))


def one_tensor(name, found):
    """`found`, the result of a function that gives one tensor. TypeError for a nest, which would become a stack of its
    parts."""
    if isinstance(found, (list, tuple, dict)):
        raise TypeError(f"{name}: the function gives one tensor, not a {type(found).__name__}: stack or concatenate its parts, "
                        "and take them apart behind it")
    return found


def custom_gradient(f):
    """A function with the gradient that f defines. f(*tensors) returns (value, pullback). pullback(gradient by the value)
    returns the gradient by each tensor: one, or a tuple, with None for tensors without one."""
    @functools.wraps(f)
    def with_gradient(*tensors):
        def checked(*given):
            found = f(*given)
            if isinstance(found, tuple) and len(found) == 2:
                one_tensor("custom_gradient", found[0])
            return found
        return _native._with_gradient(checked, tensors)
    return with_gradient


def recompute_grad(f):
    """f, a function of one tensor to one tensor, whose gradient computes f again instead of keeping its intermediate values:
    less memory, more time, the same bits."""
    @functools.wraps(f)
    def recomputed(x):
        return _native._recomputed(lambda given: one_tensor("recompute_grad", f(given)), x)
    return recomputed
