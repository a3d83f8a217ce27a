"""Op rows of special functions, activations, running products and norms, and losses in JAX."""
import itertools

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

FUNCTIONS = {
    "acos": jnp.arccos,
    "acosh": jnp.arccosh,
    "add_n": lambda x: 3 * x,
    "asin": jnp.arcsin,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "atan2": jnp.arctan2,
    "atanh": jnp.arctanh,
    "cosh": jnp.cosh,
    "digamma": special.digamma,
    "digamma of negative numbers": special.digamma,
    "divide_no_nan": jnp.divide,
    "erfc": special.erfc,
    "erfcinv": lambda x: special.erfinv(1 - x),
    "erfinv": special.erfinv,
    "exp2": lambda x: jnp.exp(x * jnp.log(2.0)),
    "is_inf": jnp.isinf,
    "is_inf of one sign": lambda x: x == jnp.inf,
    "lbeta": lambda x: jnp.sum(lax.lgamma(x), -1) - lax.lgamma(jnp.sum(x, -1)),
    "lgamma": lax.lgamma,
    "lgamma of negative numbers": lax.lgamma,
    "log10": jnp.log10,
    "log2": jnp.log2,
    "logaddexp": jnp.logaddexp,
    "multiply_no_nan": jnp.multiply,
    "ndtri": special.ndtri,
    "polygamma 1": lambda x: special.polygamma(1, x),
    "polygamma 2": lambda x: special.polygamma(2, x),
    "polyval": lambda x, y: y * x * x + 2 * x + y,
    "reciprocal": lambda x: 1 / x,
    "reciprocal_no_nan": lambda x: 1 / x,
    "sinh": jnp.sinh,
    "squared_difference": lambda a, b: jnp.square(a - b),
    "trunc": jnp.trunc,
    "truncatemod": lax.rem,
    "xdivy": jnp.divide,
    "xlog1py": special.xlog1py,
    "xlogy": special.xlogy,
}

nn = jax.nn
FUNCTIONS |= {
    "celu": nn.celu,
    "celu of alpha 2": lambda x: nn.celu(x, 2.0),
    "elu of alpha 0.5": lambda x: nn.elu(x, 0.5),
    "exponential": jnp.exp,
    "relu of Keras": lambda x: jnp.where(x > 0.5, jnp.minimum(x, 3), 0.25 * (x - 0.5)),
    "sparsemax": lambda x: sparsemax(x),
    "gelu, approximate": lambda x: nn.gelu(x, approximate=True),
    "glu": lambda x: nn.glu(x, 1),
    "hard_shrink": lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0),
    "hard_sigmoid": nn.hard_sigmoid,
    "hard_sigmoid as in ONNX": lambda x: jnp.clip(x / 4 + 0.5, 0, 1),
    "hard_silu": nn.hard_silu,
    "hard_swish": nn.hard_silu,
    "hard_tanh": nn.hard_tanh,
    "log_sigmoid": nn.log_sigmoid,
    "mish": nn.mish,
    "prelu": lambda x, slope: jnp.where(x > 0, x, slope * x),
    "relu6": nn.relu6,
    "shrink as in ONNX": lambda x: jnp.where(x > 0.5, x - 1.5, jnp.where(x < -0.5, x + 1.5, 0)),
    "silu of beta 2": lambda x: x * nn.sigmoid(2 * x),
    "soft_shrink": lambda x: jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0)),
    "softsign": nn.soft_sign,
    "sparse_plus": nn.sparse_plus,
    "sparse_sigmoid": nn.sparse_sigmoid,
    "squareplus": nn.squareplus,
    "swish": nn.silu,
    "tanh_shrink": lambda x: x - jnp.tanh(x),
    "threshold": lambda x: jnp.where(x > 0.25, x, -2),
    "thresholded_relu": lambda x: jnp.where(x > 1, x, 0),
}


def sparsemax(x):
    down = -jnp.sort(-x, axis=1)
    k = jnp.arange(1, x.shape[1] + 1).reshape((1, -1) + (1,) * (x.ndim - 2))
    above = down > (jnp.cumsum(down, 1) - 1) / k
    t = (jnp.sum(jnp.where(above, down, 0), 1, keepdims=True) - 1) / jnp.sum(above, 1, keepdims=True)
    return jnp.maximum(x - t, 0)


WAYS = {
    " in order": (-1, False, False),
    " in reverse along the first axis": (0, False, True),
    ", exclusive": (1, True, False),
    ", exclusive in reverse": (-1, True, True),
}


def running(f, start, axis, exclusive, reverse):
    def run(x):
        if reverse:
            x = jnp.flip(x, axis)
        if exclusive:
            first = jnp.full_like(lax.slice_in_dim(x, 0, 1, axis=axis), start)
            x = lax.slice_in_dim(jnp.concatenate([first, x], axis), 0, x.shape[axis], axis=axis)
        y = f(x, axis=axis % x.ndim)
        return jnp.flip(y, axis) if reverse else y
    return run


for what, way in WAYS.items():
    FUNCTIONS["cumsum" + what] = running(jnp.cumsum, 0, *way)
    FUNCTIONS["cumprod" + what] = running(jnp.cumprod, 1, *way)
    FUNCTIONS["cumulative_logsumexp" + what] = running(lax.cumlogsumexp, -jnp.inf, *way)


def recurrence(a, b):
    rows, y = [], None
    for t in range(b.shape[-2] - 1, -1, -1):
        y = b[..., t, :] if y is None else a[..., t, :] * y + b[..., t, :]
        rows.append(y)
    return jnp.stack(rows[::-1], -2)


def hardmax(x):
    return jax.nn.one_hot(jnp.argmax(x, 1), x.shape[1], axis=1)


def in_top_k(labels, scores):
    own = jnp.take_along_axis(scores, jnp.clip(labels, 0, scores.shape[-1] - 1).astype(int)[..., None], -1)
    valid = (labels >= 0) & (labels < scores.shape[-1])
    return valid & (jnp.sum(scores > own, -1) < 2)


FUNCTIONS |= {
    "in_top_k": in_top_k,
    "linear_recurrence": recurrence,
    "cummax": lambda x: lax.cummax(x, axis=1),
    "cummin": lambda x: lax.cummin(x, axis=1),
    "hardmax": hardmax,
    "norm of infinite order": lambda x: jnp.max(jnp.abs(x), -1),
    "reduce_euclidean_norm": lambda x: jnp.linalg.norm(x, axis=-1),
}
for order in (1, 2, 3, 1.5):
    FUNCTIONS[f"norm of order {order}"] = lambda x, p=order: jnp.sum(jnp.abs(x) ** p, -1) ** (1 / p)


def crossentropy(y, p):
    return -(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))


def binary_focal(y, p):
    t = y * 0.9 + 0.05
    weight = t * 0.3 + (1 - t) * 0.7
    return jnp.mean(weight * (1 - t * p - (1 - t) * (1 - p)) ** 1.5 * crossentropy(t, p), -1)


def categorical_focal(y, p):
    return -jnp.sum(0.25 * (1 - p) ** 2 * y * jnp.log(p), -1)


def cosine(y, p):
    return -jnp.sum(y * p, -1) / jnp.sqrt(jnp.sum(y * y, -1) * jnp.sum(p * p, -1))


def dice(y, p):
    return 1 - 2 * jnp.sum(y * p, -1) / (jnp.sum(y, -1) + jnp.sum(p, -1) + 1e-7)


def tversky(y, p):
    both = jnp.sum(y * p, -1)
    return 1 - both / (both + 0.3 * jnp.sum((1 - y) * p, -1) + 0.7 * jnp.sum(y * (1 - p), -1) + 1e-7)


def huber(y, p):
    e = jnp.abs(y - p)
    return jnp.mean(jnp.where(e <= 0.5, e * e / 2, 0.5 * (e - 0.25)), -1)


def categorical_hinge(y, p):
    return jnp.maximum(jnp.max((1 - y) * p, -1) - jnp.sum(y * p, -1) + 1, 0)


def ctc(y, logits):
    """By all paths of classes (of the small cases alone)."""
    log_p = jax.nn.log_softmax(logits)
    losses = []
    for row in range(y.shape[0]):
        labels = [int(label) for label in y[row]]
        time, classes = logits.shape[1:]
        found = [path for path in itertools.product(range(classes), repeat=time)
                 if [k for k, _ in itertools.groupby(path) if k != 0] == labels]
        of_paths = [sum(log_p[row, t, k] for t, k in enumerate(path)) for path in found]
        losses.append(-jax.scipy.special.logsumexp(jnp.stack(of_paths)))
    return jnp.stack(losses)


FUNCTIONS |= {
    "binary_focal_crossentropy of logits": lambda y, x: binary_focal(y, nn.sigmoid(x)),
    "binary_focal_crossentropy of probabilities": binary_focal,
    "categorical_focal_crossentropy of logits": lambda y, x: categorical_focal(y, nn.softmax(x)),
    "categorical_focal_crossentropy of probabilities":
        lambda y, p: categorical_focal(y, p / jnp.sum(p, -1, keepdims=True)),
    "categorical_hinge": categorical_hinge,
    "cosine_similarity": cosine,
    "ctc": ctc,
    "dice": dice,
    "hinge": lambda y, p: jnp.mean(jnp.maximum(1 - y * p, 0), -1),
    "huber": huber,
    "kl_divergence": lambda y, p: jnp.sum(y * jnp.log(y / p), -1),
    "log_cosh": lambda y, p: jnp.mean(jnp.log(jnp.cosh(p - y)), -1),
    "mean_absolute_percentage_error": lambda y, p: 100 * jnp.mean(jnp.abs(y - p) / jnp.abs(y), -1),
    "mean_squared_logarithmic_error": lambda y, p: jnp.mean(jnp.square(jnp.log1p(y) - jnp.log1p(p)), -1),
    "poisson": lambda y, p: jnp.mean(p - y * jnp.log(p + 1e-7), -1),
    "squared_hinge": lambda y, p: jnp.mean(jnp.square(jnp.maximum(1 - y * p, 0)), -1),
    "tversky": tversky,
}
