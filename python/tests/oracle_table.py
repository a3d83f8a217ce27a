"""NumPy as the oracle of generated ops: for each op NumPy's function, the dtypes that the op takes, and where to try it.

A row of ELEMENTWISE: the op's name, NumPy's function, dtypes, and for each operand the interval of its values. Values of
integers are whole numbers of the same interval. Floats are compared with NumPy's result in float64.
"""
import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
ALL = NUMBERS + ("bool",)
PRODUCTS = FLOATS + ("int32", "int64", "uint32", "uint64")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


def quotient(a, b):
    """Of integers the whole part, as in C."""
    return (a / b if a.dtype.kind == "f" else np.trunc(a / b)).astype(a.dtype)


def far(x):
    """A matrix that is far from singular."""
    return (x + 4 * np.eye(4)).astype(x.dtype)


WIDE = (-4, 4)
UNIT = (-0.9, 0.9)
POSITIVE = (0.1, 4)

ELEMENTWISE = {
    # name: (function, dtypes, interval of each operand)
    "square": (np.square, NUMBERS, WIDE),
    "abs": (np.abs, NUMBERS, WIDE),
    "sign": (np.sign, NUMBERS, WIDE),
    "negative": (np.negative, NUMBERS, WIDE),
    "logical_not": (np.logical_not, ("bool",), (0, 1)),
    "is_finite": (np.isfinite, FLOATS, WIDE),
    "is_nan": (np.isnan, FLOATS, WIDE),
    "is_inf": (np.isinf, FLOATS, WIDE),
    "exp": (np.exp, FLOATS, WIDE),
    "exponential": (np.exp, FLOATS, WIDE),
    "exp2": (np.exp2, FLOATS, WIDE),
    "expm1": (np.expm1, FLOATS, WIDE),
    "log": (np.log, FLOATS, POSITIVE),
    "log1p": (np.log1p, FLOATS, POSITIVE),
    "log2": (np.log2, FLOATS, POSITIVE),
    "log10": (np.log10, FLOATS, POSITIVE),
    "sqrt": (np.sqrt, FLOATS, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), FLOATS, POSITIVE),
    "cbrt": (np.cbrt, FLOATS, WIDE),
    "reciprocal": (np.reciprocal, FLOATS, POSITIVE),
    "reciprocal_no_nan": (lambda x: np.where(x == 0, 0, 1 / np.where(x == 0, 1, x)), FLOATS, WIDE),
    "sin": (np.sin, FLOATS, WIDE),
    "cos": (np.cos, FLOATS, WIDE),
    "tan": (np.tan, FLOATS, (-1.2, 1.2)),
    "asin": (np.arcsin, FLOATS, UNIT),
    "acos": (np.arccos, FLOATS, UNIT),
    "atan": (np.arctan, FLOATS, WIDE),
    "sinh": (np.sinh, FLOATS, WIDE),
    "cosh": (np.cosh, FLOATS, WIDE),
    "tanh": (np.tanh, FLOATS, WIDE),
    "asinh": (np.arcsinh, FLOATS, WIDE),
    "acosh": (np.arccosh, FLOATS, (1.1, 4)),
    "atanh": (np.arctanh, FLOATS, UNIT),
    "sinc": (np.sinc, FLOATS, WIDE),
    "deg2rad": (np.deg2rad, FLOATS, WIDE),
    "rad2deg": (np.rad2deg, FLOATS, WIDE),
    "floor": (np.floor, FLOATS, WIDE),
    "ceil": (np.ceil, FLOATS, WIDE),
    "round": (np.round, FLOATS, WIDE),
    "rint": (np.rint, FLOATS, WIDE),
    "trunc": (np.trunc, FLOATS, WIDE),
    "invert": (np.invert, INTS, WIDE),
    "population_count": (np.bitwise_count, INTS, (0, 4)),
    "nan_to_num": (np.nan_to_num, FLOATS, WIDE),
    # Activations, of which NumPy has the parts.
    "linear": (lambda x: x, ALL, WIDE),
    "stop_gradient": (lambda x: x, ALL, WIDE),
    "sigmoid": (sigmoid, FLOATS, WIDE),
    "log_sigmoid": (lambda x: -softplus(-x), FLOATS, WIDE),
    "softplus": (softplus, FLOATS, WIDE),
    "softsign": (lambda x: x / (1 + np.abs(x)), FLOATS, WIDE),
    "silu": (lambda x: x * sigmoid(x), FLOATS, WIDE),
    "swish": (lambda x: x * sigmoid(x), FLOATS, WIDE),
    "mish": (lambda x: x * np.tanh(softplus(x)), FLOATS, WIDE),
    "relu": (lambda x: np.maximum(x, 0), FLOATS, WIDE),
    "relu6": (lambda x: np.clip(x, 0, 6), FLOATS, (-4, 8)),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), FLOATS, WIDE),
    "hard_sigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), FLOATS, WIDE),
    "hard_silu": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), FLOATS, WIDE),
    "hard_swish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), FLOATS, WIDE),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), FLOATS, WIDE),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(x)), FLOATS, WIDE),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), FLOATS, WIDE),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.2 * x), FLOATS, WIDE),
    "tanh_shrink": (lambda x: x - np.tanh(x), FLOATS, WIDE),
    "hard_shrink": (lambda x: np.where(np.abs(x) > 0.5, x, 0), FLOATS, WIDE),
    "soft_shrink": (lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), FLOATS, WIDE),
    "squareplus": (lambda x: (x + np.sqrt(x * x + 4)) / 2, FLOATS, WIDE),
    # Two operands.
    "add": (np.add, NUMBERS, WIDE, WIDE),
    "subtract": (np.subtract, NUMBERS, WIDE, WIDE),
    "multiply": (np.multiply, NUMBERS, WIDE, WIDE),
    "divide": (quotient, NUMBERS, WIDE, (1, 4)),
    "realdiv": (quotient, NUMBERS, WIDE, (1, 4)),
    "divide_no_nan": (np.divide, FLOATS, WIDE, POSITIVE),
    "floor_divide": (np.floor_divide, NUMBERS, WIDE, (1, 4)),
    "floordiv": (np.floor_divide, NUMBERS, WIDE, (1, 4)),
    "mod": (np.mod, NUMBERS, WIDE, (1, 4)),
    "floormod": (np.mod, NUMBERS, WIDE, (1, 4)),
    "truncatemod": (np.fmod, NUMBERS, WIDE, (1, 4)),
    "pow": (np.power, NUMBERS, POSITIVE, (0, 3)),
    "integer_pow": (np.power, INTS, WIDE, (0, 3)),
    "maximum": (np.maximum, NUMBERS, WIDE, WIDE),
    "minimum": (np.minimum, NUMBERS, WIDE, WIDE),
    "fmax": (np.fmax, NUMBERS, WIDE, WIDE),
    "fmin": (np.fmin, NUMBERS, WIDE, WIDE),
    "hypot": (np.hypot, FLOATS, WIDE, WIDE),
    "atan2": (np.arctan2, FLOATS, WIDE, WIDE),
    "copysign": (np.copysign, FLOATS, WIDE, WIDE),
    "logaddexp": (np.logaddexp, FLOATS, WIDE, WIDE),
    "logaddexp2": (np.logaddexp2, FLOATS, WIDE, WIDE),
    "heaviside": (np.heaviside, FLOATS, WIDE, WIDE),
    "squared_difference": (lambda a, b: (a - b) ** 2, NUMBERS, WIDE, WIDE),
    "multiply_no_nan": (np.multiply, FLOATS, WIDE, WIDE),
    "xlogy": (lambda x, y: x * np.log(y), FLOATS, WIDE, POSITIVE),
    "xlog1py": (lambda x, y: x * np.log1p(y), FLOATS, WIDE, POSITIVE),
    "xdivy": (np.divide, FLOATS, WIDE, POSITIVE),
    "gcd": (np.gcd, INTS, (1, 12), (1, 12)),
    "lcm": (np.lcm, INTS, (1, 8), (1, 8)),
    "bitwise_and": (np.bitwise_and, INTS, WIDE, WIDE),
    "bitwise_or": (np.bitwise_or, INTS, WIDE, WIDE),
    "bitwise_xor": (np.bitwise_xor, INTS, WIDE, WIDE),
    "left_shift": (np.left_shift, INTS, (0, 4), (0, 3)),
    "right_shift": (np.right_shift, INTS, (0, 4), (0, 3)),
    "logical_and": (np.logical_and, ("bool",), (0, 1), (0, 1)),
    "logical_or": (np.logical_or, ("bool",), (0, 1), (0, 1)),
    "logical_xor": (np.logical_xor, ("bool",), (0, 1), (0, 1)),
    "equal": (np.equal, ALL, WIDE, WIDE),
    "not_equal": (np.not_equal, ALL, WIDE, WIDE),
    "less": (np.less, NUMBERS, WIDE, WIDE),
    "less_equal": (np.less_equal, NUMBERS, WIDE, WIDE),
    "greater": (np.greater, NUMBERS, WIDE, WIDE),
    "greater_equal": (np.greater_equal, NUMBERS, WIDE, WIDE),
    "isclose": (np.isclose, FLOATS, WIDE, WIDE),
}


def spectrum(x):
    """A complex array as Gradus has it: real and imaginary parts in the last axis."""
    return np.stack([x.real, x.imag], -1)


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1]


# Ops of a whole matrix [4, 4] of each dtype: name: (call of the op, NumPy's function, dtypes).
WHOLE = {
    "zeros_like": (lambda f, x: f(x), np.zeros_like, ALL),
    "ones_like": (lambda f, x: f(x), np.ones_like, ALL),
    "transpose": (lambda f, x: f(x), np.transpose, ALL),
    "matrix_transpose": (lambda f, x: f(x), np.transpose, ALL),
    "adjoint": (lambda f, x: f(x), np.transpose, ALL),
    "reshape": (lambda f, x: f(x, [2, 8]), lambda x: x.reshape(2, 8), ALL),
    "expand_dims": (lambda f, x: f(x, 1), lambda x: np.expand_dims(x, 1), ALL),
    "squeeze": (lambda f, x: f(x), np.squeeze, ALL),
    "broadcast_to": (lambda f, x: f(x, [3, 4, 4]), lambda x: np.broadcast_to(x, (3, 4, 4)), ALL),
    "tile": (lambda f, x: f(x, [2, 1]), lambda x: np.tile(x, (2, 1)), ALL),
    "repeat": (lambda f, x: f(x, 2, 0), lambda x: np.repeat(x, 2, 0), ALL),
    "reverse": (lambda f, x: f(x, [0]), lambda x: np.flip(x, 0), ALL),
    "flip": (lambda f, x: f(x), np.flip, ALL),
    "roll": (lambda f, x: f(x, 1, 0), lambda x: np.roll(x, 1, 0), ALL),
    "pad": (lambda f, x: f(x, [(1, 0), (0, 2)]), lambda x: np.pad(x, [(1, 0), (0, 2)]), ALL),
    "moveaxis": (lambda f, x: f(x, 0, 1), lambda x: np.moveaxis(x, 0, 1), ALL),
    "swapaxes": (lambda f, x: f(x, 0, 1), lambda x: np.swapaxes(x, 0, 1), ALL),
    "concat": (lambda f, x: f([x, x], axis=1), lambda x: np.concatenate([x, x], 1), ALL),
    "stack": (lambda f, x: f([x, x]), lambda x: np.stack([x, x]), ALL),
    "slice": (lambda f, x: f(x, [1, 0], [2, 3]), lambda x: x[1:3, :3], ALL),
    "strided_slice": (lambda f, x: f(x, [0, 1], [4, 4], strides=[2, 1]), lambda x: x[0:4:2, 1:4], ALL),
    "diag_part": (lambda f, x: f(x), np.diag, ALL),
    "tensor_diag_part": (lambda f, x: f(x), np.diag, ALL),
    "triu": (lambda f, x: f(x, 1), lambda x: np.triu(x, 1), ALL),
    "tril": (lambda f, x: f(x), np.tril, ALL),
    "trace": (lambda f, x: f(x), np.trace, NUMBERS),
    "reduce_sum": (lambda f, x: f(x, axis=0), lambda x: np.sum(x, 0, dtype=x.dtype), NUMBERS),
    "reduce_mean": (lambda f, x: f(x, axis=[0, 1]), lambda x: np.mean(x), FLOATS),
    "reduce_max": (lambda f, x: f(x, axis=1, keepdims=True), lambda x: np.max(x, 1, keepdims=True), NUMBERS),
    "reduce_min": (lambda f, x: f(x), np.min, NUMBERS),
    "reduce_prod": (lambda f, x: f(x, axis=1), lambda x: np.prod(x, 1, dtype=x.dtype), NUMBERS),
    "reduce_any": (lambda f, x: f(x, axis=1), lambda x: np.any(x, 1), ("bool",)),
    "reduce_all": (lambda f, x: f(x, axis=1), lambda x: np.all(x, 1), ("bool",)),
    "reduce_std": (lambda f, x: f(x), np.std, FLOATS),
    "reduce_variance": (lambda f, x: f(x), np.var, FLOATS),
    "reduce_euclidean_norm": (lambda f, x: f(x, axis=1), lambda x: np.linalg.norm(x, axis=1), FLOATS),
    "reduce_logsumexp": (lambda f, x: f(x, axis=1), lambda x: np.log(np.sum(np.exp(x), 1)), FLOATS),
    "norm": (lambda f, x: f(x), np.linalg.norm, FLOATS),
    "argmax": (lambda f, x: f(x, axis=1), lambda x: np.argmax(x, 1), ALL),
    "argmin": (lambda f, x: f(x, axis=1), lambda x: np.argmin(x, 1), ALL),
    "count_nonzero": (lambda f, x: f(x, axis=0), lambda x: np.count_nonzero(x, 0), ALL),
    "cumsum": (lambda f, x: f(x, 1), lambda x: np.cumsum(x, 1, dtype=x.dtype), NUMBERS),
    "cumprod": (lambda f, x: f(x, 1), lambda x: np.cumprod(x, 1, dtype=x.dtype), NUMBERS),
    "cummax": (lambda f, x: f(x, 1), lambda x: np.maximum.accumulate(x, 1), NUMBERS),
    "cummin": (lambda f, x: f(x, 1), lambda x: np.minimum.accumulate(x, 1), NUMBERS),
    "sort": (lambda f, x: f(x), np.sort, ALL),
    "argsort": (lambda f, x: f(x), lambda x: np.argsort(x, kind="stable"), ALL),
    "diff": (lambda f, x: f(x), np.diff, NUMBERS),
    "median": (lambda f, x: f(x), np.median, FLOATS),
    "quantile": (lambda f, x: f(x, 0.25), lambda x: np.quantile(x, 0.25), FLOATS),
    "trapezoid": (lambda f, x: f(x), lambda x: (x[:, 1:] + x[:, :-1]).sum(-1) / 2, FLOATS),
    "softmax": (lambda f, x: f(x), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), FLOATS),
    "log_softmax": (lambda f, x: f(x), lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)), FLOATS),
    "where": (lambda f, x: f(f.greater(x, x[::-1]), x, x[::-1]), lambda x: np.where(x > x[::-1], x, x[::-1]), NUMBERS),
    "matmul": (lambda f, x: f(x, x), lambda x: x @ x, PRODUCTS),
    "matvec": (lambda f, x: f(x, x[0]), lambda x: x @ x[0], PRODUCTS),
    "tensordot": (lambda f, x: f(x, x, 1), lambda x: np.tensordot(x, x, 1), PRODUCTS),
    "einsum": (lambda f, x: f("ij,kj->ik", [x, x]), lambda x: np.einsum("ij,kj->ik", x, x), PRODUCTS),
    "outer": (lambda f, x: f(x[0], x[1]), lambda x: np.outer(x[0], x[1]), NUMBERS),
    "kron": (lambda f, x: f(x, x), lambda x: np.kron(x, x), NUMBERS),
    "cross": (lambda f, x: f(x[:, :3], x[::-1, :3]), lambda x: np.cross(x[:, :3], x[::-1, :3]), NUMBERS),
    "gather": (lambda f, x: f(x, [2, 0]), lambda x: np.take(x, [2, 0], 0), ALL),
    "take_along_axis": (lambda f, x: f(x, np.array([[1], [0], [2], [3]]), 1),
                        lambda x: np.take_along_axis(x, np.array([[1], [0], [2], [3]]), 1), ALL),
    "det": (lambda f, x: f(far(x)), lambda x: np.linalg.det(far(x)), FLOATS),
    "inverse": (lambda f, x: f(far(x)), lambda x: np.linalg.inv(far(x)), FLOATS),
    "inv": (lambda f, x: f(far(x)), lambda x: np.linalg.inv(far(x)), FLOATS),
    "svdvals": (lambda f, x: f(far(x)), lambda x: np.linalg.svd(far(x), compute_uv=False), FLOATS),
    "pinv": (lambda f, x: f(far(x)), lambda x: np.linalg.pinv(far(x)), FLOATS),
    "solve": (lambda f, x: f(far(x), x[:, :2]), lambda x: np.linalg.solve(far(x), x[:, :2]), FLOATS),
    "ldexp": (lambda f, x: f(x, np.array([-2, 0, 1, 2])), lambda x: x * 2.0 ** np.array([-2, 0, 1, 2]), FLOATS),
    "fft": (lambda f, x: f(x.reshape(2, 4, 2)), lambda x: spectrum(np.fft.fft(complex_of(x.reshape(2, 4, 2)))),
            FLOATS),
    "ifft": (lambda f, x: f(x.reshape(2, 4, 2)), lambda x: spectrum(np.fft.ifft(complex_of(x.reshape(2, 4, 2)))),
             FLOATS),
    "rfft": (lambda f, x: f(x), lambda x: spectrum(np.fft.rfft(x)), FLOATS),
    "fftshift": (lambda f, x: f(x), np.fft.fftshift, ALL),
    "ifftshift": (lambda f, x: f(x), np.fft.ifftshift, ALL),
    "vander": (lambda f, x: f(x[0], 3), lambda x: np.vander(x[0], 3), NUMBERS),
}
