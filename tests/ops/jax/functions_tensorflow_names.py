"""Op rows of statistics, dilation and erosion, and of further names in JAX."""
import jax.numpy as jnp


def windows(x, rows, columns, stride, rate, same):
    """[taps, batch, windows..., channels] of x, with -infinity beyond the ends."""
    def along(n, k):
        count = -(-n // stride) if same else (n - (k - 1) * rate - 1) // stride + 1
        missing = max(0, (count - 1) * stride + (k - 1) * rate + 1 - n) if same else 0
        return count, (missing // 2, missing - missing // 2)

    (height, top), (width, left) = along(x.shape[1], rows), along(x.shape[2], columns)
    x = jnp.pad(x, [(0, 0), top, left, (0, 0)], constant_values=-jnp.inf)
    return jnp.stack([x[:, r * rate:r * rate + (height - 1) * stride + 1:stride,
                        c * rate:c * rate + (width - 1) * stride + 1:stride] for r in range(rows) for c in range(columns)])


def dilation(x, filters, stride=1, rate=1, same=False):
    rows, columns, channels = filters.shape
    taps = windows(x, rows, columns, stride, rate, same)
    return jnp.max(taps + filters.reshape(rows * columns, 1, 1, 1, channels), 0)


def weighted_mean(x, w):
    w = jnp.broadcast_to(w, x.shape)
    return jnp.sum(x * w, -1) / jnp.sum(w, -1)


FUNCTIONS = {
    "dilation2d": lambda x, f: dilation(x, f, rate=2, same=True),
    "erosion2d": lambda x, f: -dilation(-x, f[::-1, ::-1], stride=2),
    "weighted_moments, mean": weighted_mean,
    "weighted_moments, variance": lambda x, w: weighted_mean((x - weighted_mean(x, w)[:, None]) ** 2, w),
    "sufficient_statistics and normalize_moments": lambda x: jnp.mean(x, -1) + jnp.var(x, -1),
    "normalize": lambda x: x / jnp.sum(x, -1, keepdims=True) * jnp.linalg.norm(x, axis=-1, keepdims=True),
    "further names": lambda x: x,
    "lrn": lambda x: x / (1 + x * x),
    "inv": lambda x: 1 / x,
}
