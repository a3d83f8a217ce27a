"""keras.random: random numbers as functions of a seed, which a SeedGenerator's Variable gives."""
import gradus
from gradus import ops, random
from keras.src.backend.common import standardize_dtype
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, make_default_seed  # noqa: F401
from keras.src.random.seed_generator import draw_seed as _drawn_seed

from keras_gradus.src.ops.core import convert_to_tensor, draws_for_elements
from keras_gradus.src.replicas import first_row, is_divided


def draw_seed(seed):
    """The seed of one draw; each shard of a divided batch, and each element of a data set that is mapped, has its own."""
    if draws_for_elements() and not isinstance(seed, int):
        of_element = random.integers([2], high=1 << 31, dtype="int64")  # by its epoch and number: no state is assigned
        begin = getattr(seed, "_initial_seed", None) or 0
        return ops.add(of_element, gradus.constant([begin, 0], "int64"))
    drawn = convert_to_tensor(_drawn_seed(seed))
    if not is_divided():
        return drawn
    return ops.add(drawn, ops.multiply(ops.cast(ops.add(first_row(), 1), drawn.dtype), gradus.constant([0, 1_000_003], drawn.dtype)))


def _drawn(f, shape, dtype, seed, **options):
    """f(shape, seed) in the dtype; numbers of 16 bits are drawn as float32."""
    dtype = standardize_dtype(dtype or floatx())
    drawn = dtype if dtype in ("float32", "float64") else "float32"
    return ops.cast(f(_sizes(shape), draw_seed(seed), dtype=drawn, **options), dtype)


def _sizes(shape):
    return tuple(int(size) for size in shape)


def _standard(x):
    """True for a number: the engine's functions take bounds and moments as numbers."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    drawn = _drawn(random.stateless_normal, shape, dtype, seed)
    return _scaled(drawn, stddev, mean)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    return _scaled(_drawn(random.stateless_truncated_normal, shape, dtype, seed), stddev, mean)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    drawn = _drawn(random.stateless_uniform, shape, dtype, seed)
    low = convert_to_tensor(minval, dtype=drawn.dtype)
    return _scaled(drawn, ops.subtract(convert_to_tensor(maxval, dtype=drawn.dtype), low), low)


def _scaled(drawn, factor, shift):
    """drawn * factor + shift; numbers and tensors."""
    if not (_standard(factor) and factor == 1):
        drawn = ops.multiply(drawn, convert_to_tensor(factor, dtype=drawn.dtype))
    return drawn if _standard(shift) and shift == 0 else ops.add(drawn, convert_to_tensor(shift, dtype=drawn.dtype))


def randint(shape, minval, maxval, dtype="int32", seed=None):
    """Whole numbers of [minval, maxval), which may be tensors."""
    if isinstance(minval, int) and isinstance(maxval, int):
        drawn = random.stateless_integers(_sizes(shape), draw_seed(seed), low=minval, high=maxval, dtype="int64")
        return ops.cast(drawn, standardize_dtype(dtype))
    low = convert_to_tensor(minval, dtype="float64")
    share = random.stateless_uniform(_sizes(shape), draw_seed(seed), dtype="float64")
    span = ops.subtract(convert_to_tensor(maxval, dtype="float64"), low)
    return ops.cast(ops.floor(ops.add(ops.multiply(share, span), low)), standardize_dtype(dtype))


def categorical(logits, num_samples, dtype="int64", seed=None):
    drawn = random.stateless_categorical(convert_to_tensor(logits), num_samples, draw_seed(seed))
    return ops.cast(drawn, standardize_dtype(dtype))


def dropout(inputs, rate, noise_shape=None, seed=None):
    if rate == 0.0:
        return inputs
    inputs = convert_to_tensor(inputs)
    return ops.zeros_like(inputs) if rate == 1.0 else dropped(inputs, rate, draw_seed(seed), noise_shape)


def dropped(inputs, rate, seed, noise_shape=None):
    """Zeros for the share `rate`; the others are divided by 1 - rate. noise_shape has 1 where a choice is shared."""
    inputs = convert_to_tensor(inputs)
    sizes = inputs.shape if noise_shape is None else [
        whole if size is None else int(size) for size, whole in zip(noise_shape, inputs.shape)]
    keep = ops.greater_equal(random.stateless_uniform(_sizes(sizes), seed), float(rate))
    return ops.where(keep, ops.multiply(inputs, 1 / (1 - rate)), gradus.constant(0, inputs.dtype))


def shuffle(x, axis=0, seed=None):
    x = convert_to_tensor(x)
    places = random.stateless_shuffle(ops.range(x.shape[axis], dtype="int32"), draw_seed(seed))
    return ops.gather(x, places, axis=axis)


def gamma(shape, alpha, dtype=None, seed=None):
    return _drawn(_gamma, shape, dtype, seed, alpha=alpha)


def _gamma(shape, seed, dtype, alpha):
    return random.stateless_gamma(shape, seed, ops.broadcast_to(convert_to_tensor(alpha, dtype=dtype), shape), dtype=dtype)


def beta(shape, alpha, beta, dtype=None, seed=None):
    return _drawn(_beta, shape, dtype, seed, alpha=alpha, beta=beta)


def _beta(shape, seed, dtype, alpha, beta):
    alpha, beta = (ops.broadcast_to(convert_to_tensor(x, dtype=dtype), shape) for x in (alpha, beta))
    return random.stateless_beta(shape, seed, alpha, beta, dtype=dtype)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    """The number of successes of `counts` trials, by as many uniform numbers as the largest count."""
    dtype, sizes = standardize_dtype(dtype or floatx()), _sizes(shape)
    counts = ops.broadcast_to(convert_to_tensor(counts, dtype="float32"), sizes)
    most = int(ops.reduce_max(counts))
    share = random.stateless_uniform((most, *sizes), draw_seed(seed))
    hits = ops.less(share, convert_to_tensor(probabilities, dtype="float32"))
    counted = ops.less(ops.reshape(ops.range(most, dtype="float32"), (most, *[1] * len(sizes))), counts)
    return ops.cast(ops.reduce_sum(ops.cast(ops.logical_and(hits, counted), "float32"), axis=0), dtype)
