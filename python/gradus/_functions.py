"""gradus.function, as a decorator and as a call."""
import functools

from . import _native
from ._names import knows_keywords


@knows_keywords
def function(f=None, *, name=None, input_signature=None, max_variants=_native.most_variants, open_sizes=True,
             run_eagerly=False, profile=False, max_bytes=0, disable=()):
    """f as a compiled function: traced once for each kind of call, with forward, backward and updates in one program.

    Tensors, arrays and nests of them (dicts, lists, tuples, named tuples, dataclasses) are traced. Python's numbers,
    texts and None are structure: each value has a program; Variables and other objects count by identity. `if`,
    `while` and `and` on tensors work: each way is traced when a call first takes it. What else Python does happens
    while it is traced alone.

    Args:
        f: the function; without it this is a decorator.
        name: in reports and errors.
        input_signature: TensorSpecs of all tensors; one program then serves every size that is None.
        max_variants: programs at a time; past that the least recently used one goes.
        open_sizes: False makes a program for each size.
        run_eagerly: op by op, for a debugger.
        profile: explain() tells how long each kernel takes.
        max_bytes: a budget for the values that a call keeps; 0 is none.
        disable: passes to leave out.
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
        stem: of the files; its name begins the functions' names in C: net_train, net_predict.
        steps: by name, functions of gradus.function that take tensors and capture all else, with TensorSpecs of known
            sizes; a function alone where its input_signature knows all sizes.
        instruction_set: "avx2" or "avx512"; else that of this processor.
        target: another kind of machine, such as "aarch64-linux-gnu".
        weights: a file for the values of Variables, which are in the object otherwise.

    Gives the paths of the object, the header, and the file of weights or None. InvalidArgumentError for names that are no
    names in C, and for sizes that are not known.
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
        header: that of the step.
        variables: of the model and of the optimizer, which are built before: model.variables + optimizer.variables.

    All or nothing: DataLossError if the file has another size, InvalidArgumentError for a field that no Variable has.
    """
    _native._load_object_state(file, header, list(variables))


def one_tensor(name, found):
    """The result of a function that gives one tensor; TypeError for a nest, which would become a stack of its parts."""
    if isinstance(found, (list, tuple, dict)):
        raise TypeError(f"{name}: the function gives one tensor, not a {type(found).__name__}: stack or concatenate its parts, "
                        "and take them apart behind it")
    return found


def custom_gradient(f):
    """f with a gradient of its own: f(*tensors) gives its value, a tensor, and a function that takes the gradient by that
    value to the gradients by the tensors: one, or a tuple with None where there is none."""
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
    """f, a function of one tensor, whose gradient computes f again instead of keeping what it computed."""
    @functools.wraps(f)
    def recomputed(x):
        return _native._recomputed(lambda given: one_tensor("recompute_grad", f(given)), x)
    return recomputed
