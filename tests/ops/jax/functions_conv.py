"""Op rows of convolutions and pooling, in JAX."""
import jax
import jax.numpy as jnp
import numpy as np

NAMES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def conv(strides=None, padding="VALID", dilations=None, groups=1):
    def run(x, w):
        n = x.ndim - 2
        return jax.lax.conv_general_dilated(
            x, w, strides or (1,) * n, padding, rhs_dilation=dilations, dimension_numbers=NAMES[n],
            feature_group_count=groups, precision="highest")
    return run


def depthwise(**options):
    def run(x, w):
        channels, multiplier = w.shape[-2:]
        return conv(groups=channels, **options)(x, w.reshape(*w.shape[:-2], 1, channels * multiplier))
    return run


def transposed(size, groups=1, **geometry):
    """The gradient, by its input, of the convolution that it is the transpose of."""
    def run(x, w):
        out, channels = w.shape[-2] * groups, w.shape[-1]
        forward = lambda y: conv(groups=groups, **geometry)(y, w)
        zeros = jnp.zeros((x.shape[0], *size, out))
        assert channels == x.shape[-1]
        return jax.vjp(forward, zeros)[1](x)[0]
    return run


def by_weights(kernel, groups=1, **geometry):
    def run(x, dy):
        forward = lambda w: conv(groups=groups, **geometry)(x, w)
        return jax.vjp(forward, jnp.zeros((*kernel, x.shape[-1] // groups, dy.shape[-1])))[1](dy)[0]
    return run


def pads(strides, window, before, size, x, dilations=None):
    """Explicit paddings that give so many windows."""
    out = [(0, 0)]
    for i, (s, k, b, o) in enumerate(zip(strides, window, before, size)):
        d = dilations[i] if dilations else 1
        out.append((b, (o - 1) * s + (k - 1) * d + 1 - x.shape[i + 1] - b))
    return out + [(0, 0)]


def windows(x, window, strides, before, size, outside, dilations=None):
    """[batch, size..., taps, channels], two spatial dimensions."""
    d = dilations or (1, 1)
    padding = [(lo, max(hi, 0)) for lo, hi in pads(strides, window, before, size, x, d)]
    x = jnp.pad(x, padding, constant_values=outside)
    taps = [x[:, i * d[0]:i * d[0] + (size[0] - 1) * strides[0] + 1:strides[0],
              j * d[1]:j * d[1] + (size[1] - 1) * strides[1] + 1:strides[1]]
            for i in range(window[0]) for j in range(window[1])]
    return jnp.stack(taps, 3)


def largest(window, strides, before, size, dilations=None):
    return lambda x: jnp.max(windows(x, window, strides, before, size(x), -jnp.inf, dilations), 3)


def places(x):
    numbers = jnp.broadcast_to(jnp.arange(24.0).reshape(1, 3, 4, 2), x.shape)
    geometry = (3, 3), (2, 2), (1, 0), (2, 2)
    best = jnp.argmax(windows(x, *geometry, -jnp.inf), 3)[:, :, :, None]
    return jnp.take_along_axis(windows(numbers, *geometry, -1), best, 3)[:, :, :, 0]


def mean(window, strides, before, size):
    def run(x):
        sums = jnp.sum(windows(x, window, strides, before, size(x), 0), 3)
        return sums / jnp.sum(windows(jnp.ones_like(x), window, strides, before, size(x), 0), 3)
    return run


def halves(x):
    return x.shape[1] // 2, x.shape[2] // 2


def with_padding(x):
    counts = np.outer([3, 3, 2], [2, 1])[None, :, :, None]
    return jnp.sum(windows(x, (3, 2), (2, 2), (1, 0), (3, 2), 0), 3) / counts


def lp(p):
    return lambda x: jnp.sum(jnp.abs(windows(x, (2, 2), (1, 1), (0, 0), (2, 3), 0)) ** p, 3) ** (1 / p)


def adaptive(reduce, rows, columns):
    def parts(n, m):
        return [slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
    return lambda x: jnp.stack([jnp.stack([reduce(x[:, r, c], (1, 2)) for c in parts(x.shape[2], columns)], 1)
                                for r in parts(x.shape[1], rows)], 1)


def unpool(x):
    places = jnp.array([3, 0, 7, 4, 5, 2, 1, 6]).reshape(2, 4)
    flat = jax.vmap(lambda row, at: jnp.zeros(8).at[at].add(row))(x.reshape(2, 4), places)
    return flat.reshape(2, 2, 2, 2)


def fold(p):
    out = jnp.zeros((1, 5, 3, 1))
    for tap in range(4):
        r, c = tap // 2, tap % 2
        out = out.at[:, r:r + 4, c:c + 2].add(p[..., tap:tap + 1])
    return out[:, 1:]


def chosen(x, taps):
    seen = windows(x, (2, 2), (2, 1), (1, 1), (3, 4), 0, (1, 2))
    index = taps.astype(jnp.int32)
    read = jnp.take_along_axis(seen, jnp.maximum(index, 0)[:, :, :, None], 3)[:, :, :, 0]
    return jnp.where((index >= 0) & (index < 4), read, 0)


def deposited(y, taps):
    return jax.vjp(lambda x: chosen(x, taps), jnp.zeros((1, 4, 3, 2)))[1](y)[0]


def deformed(x, w, offsets, mask):
    rows, columns = x.shape[1:3]
    out = jnp.zeros((x.shape[0], 3, 2, 4))
    for tap in range(4):
        for part in range(2):
            at = part * 4 + tap
            r = jnp.arange(3)[:, None] + tap // 2 - 1 + offsets[..., at * 2]
            c = 2 * jnp.arange(2)[None] + tap % 2 + offsets[..., at * 2 + 1]
            near_r = jnp.maximum(0, 1 - jnp.abs(r[..., None] - jnp.arange(rows)))
            near_c = jnp.maximum(0, 1 - jnp.abs(c[..., None] - jnp.arange(columns)))
            read = jnp.einsum("nijr,nijc,nrck->nijk", near_r, near_c, x[..., part * 2:part * 2 + 2])
            read = read * mask[..., at:at + 1]
            out = out.at[..., part * 2:part * 2 + 2].add(read @ w[tap // 2, tap % 2, :, part * 2:part * 2 + 2])
    return out


FUNCTIONS = {
    "conv1d, same, stride 2": conv((2,), "SAME"),
    "conv2d": conv(),
    "conv2d, strides, dilations, paddings": conv((2, 1), ((1, 0), (2, 1)), (1, 2)),
    "conv2d, groups": conv(padding="SAME", groups=2),
    "conv3d, same": conv((1, 2, 1), "SAME"),
    "conv2d, pointwise": conv(),
    "depthwise_conv2d": depthwise(padding="SAME"),
    "depthwise_conv2d, stride 2, two for each": depthwise(strides=(2, 2), padding="SAME"),
    "depthwise_conv1d, dilated": depthwise(padding=((2, 1),), dilations=(2,)),
    "separable_conv2d": lambda x, d, p: conv()(depthwise()(x, d), p),
    "conv1d_transpose, valid, stride 3": transposed((9,), strides=(3,), padding=((0, 0),)),
    "conv2d_transpose, same": transposed((6, 4), strides=(2, 2), padding="SAME"),
    "conv2d_transpose, output_padding, groups":
        transposed((6, 6), groups=2, strides=(2, 3), padding=((1, 1), (0, 1))),
    "conv2d_transpose, dilations": transposed((4, 4), dilations=(2, 1)),
    "conv2d_transpose, paddings past the window": transposed((2, 3), padding=((1, 1), (2, 1))),
    "conv3d_transpose, same, output_shape": transposed((3, 2, 4), strides=(2, 1, 2), padding="SAME"),
    "conv2d_transpose, depthwise": transposed((4, 6), groups=3, strides=(2, 2), padding="SAME"),
    "kernel_convolution": by_weights((2, 2), strides=(2, 1), padding=((1, 0), (0, 0)), dilations=(1, 2)),
    "kernel_convolution, depthwise": by_weights((3,), groups=3, padding=((1, 1),)),
    "deform_conv2d": deformed,
    "max_pool2d": largest((2, 2), (2, 2), (0, 0), halves),
    "max_pool, overlapping, same": largest((3, 2), (2, 1), (0, 0), lambda x: (2, 5)),
    "max_pool, ceil_mode": largest((2, 2), (2, 2), (0, 1), lambda x: (3, 3)),
    "max_pool, dilated, windows without elements":
        largest((2, 2), (1, 1), (1, 3), lambda x: (1, 5), (2, 2)),
    "max_pool_with_argmax": places,
    "max_pool3d": lambda x: jnp.max(x.reshape(1, 1, 2, 3, 1, 2, 2), (2, 5)),
    "global_max_pool": lambda x: jnp.max(x, (1, 2)),
    "avg_pool2d": mean((2, 2), (2, 2), (0, 0), halves),
    "avg_pool, same": mean((3, 3), (2, 2), (0, 1), lambda x: (2, 3)),
    "avg_pool, count_include_pad, ceil_mode": with_padding,
    "lp_pool, 1": lp(1),
    "lp_pool, 2": lp(2),
    "lp_pool, 3": lp(3),
    "global_avg_pool": lambda x: jnp.mean(x, (1, 2)),
    "global_lp_pool": lambda x: jnp.sqrt(jnp.sum(x * x, (1, 2))),
    "adaptive_avg_pool": adaptive(jnp.mean, 2, 3),
    "adaptive_max_pool": adaptive(jnp.max, 3, 2),
    "max_unpool": unpool,
    "extract_patches": lambda x: windows(x, (2, 1), (1, 2), (1, 0), (3, 2), 0, (2, 1)).reshape(x.shape[0], 3, 2, 4),
    "fold_patches": fold,
    "window_select": chosen,
    "window_deposit": deposited,
}
