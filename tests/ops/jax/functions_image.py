"""Op rows of resampling, sampling by a grid and regions of interest, in JAX."""
import jax
import jax.numpy as jnp
import numpy as np


def taps(position, n, kernel, reach):
    """Neighbours of positions [m] and their weights, [m, 2 reach] each; those beyond the border are those at it."""
    j = jnp.floor(position)[:, None] + jnp.arange(-reach + 1, reach + 1)
    return jnp.clip(j, 0, n - 1).astype(int), kernel(j - position[:, None]), j


def triangle(x):
    return jnp.maximum(0, 1 - jnp.abs(x))


def keys(x, a=-0.75):
    x = jnp.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((x - 5) * x + 8) * x * a - 4 * a
    return jnp.where(x <= 1, near, jnp.where(x < 2, far, 0.0))


def along(x, axis, size, kernel=triangle, scale=1.0, reach=1, exclude=False):
    n = x.shape[axis]
    if size == n:
        return x
    position = (jnp.arange(size) + 0.5) * n / size - 0.5
    index, weight, j = taps(position, n, lambda d: kernel(d * scale), reach)
    if exclude:
        weight = jnp.where((j < 0) | (j >= n), 0, weight)
    if scale != 1 or exclude:
        weight = weight / weight.sum(1, keepdims=True)
    rows = jnp.moveaxis(x, axis, 0)[index]
    return jnp.moveaxis(jnp.einsum("mk,mk...->m...", weight, rows), 0, axis)


def bilinear(x):
    return along(along(x, x.ndim - 3, 5), x.ndim - 2, 3)


def cropped(x):
    for axis, size in ((0, 2), (1, 6)):
        n = x.shape[axis]
        if size < n:
            x = jax.lax.slice_in_dim(x, (n - size) // 2, (n - size) // 2 + size, axis=axis)
        else:
            x = jnp.pad(x, [(0, 0)] * axis + [((size - n) // 2, (size - n + 1) // 2)] + [(0, 0)] * (1 - axis))
    return x


def reflected(p, low, high):
    span = high - low
    t = jnp.abs(p - low)
    flips = jnp.floor(t / span)
    rest = t - flips * span
    return jnp.where(flips % 2 == 0, rest, span - rest) + low


def grid_sample(x, grid, mode="linear", padding="zeros", align=False):
    height, width = x.shape[2:]

    def axis(g, n):
        p = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2

        def padded(q):
            if padding == "reflection":
                q = reflected(q, 0.0 if align else -0.5, n - 1.0 if align else n - 0.5)
            return q if padding == "zeros" else jnp.clip(q, 0, n - 1)

        if mode == "nearest":
            return [(jnp.round(padded(p)), 1.0)]
        if mode == "linear":
            q = padded(p)
            below = jnp.floor(q)
            return [(below, 1 - (q - below)), (below + 1, q - below)]
        below = jnp.floor(p)
        return [(padded(below + k), keys(p - below - k)) for k in range(-1, 3)]

    total = 0.0
    example = jnp.arange(x.shape[0])[:, None, None]
    for i, wi in axis(grid[..., 1], height):
        for j, wj in axis(grid[..., 0], width):
            inside = (i >= 0) & (i <= height - 1) & (j >= 0) & (j <= width - 1)
            weight = wi * wj * (inside if padding == "zeros" else 1.0)
            row, column = jnp.clip(i, 0, height - 1).astype(int), jnp.clip(j, 0, width - 1).astype(int)
            total = total + jnp.moveaxis(x[example, :, row, column], -1, 1) * jnp.broadcast_to(weight, i.shape)[:, None]
    return total


def affine_grid(theta):
    rows, columns = (2 * jnp.arange(2) + 1) / 2 - 1, (2 * jnp.arange(3) + 1) / 3 - 1
    base = jnp.stack([*jnp.meshgrid(columns, rows), jnp.ones((2, 3))], -1)
    return jnp.einsum("hwj,nij->nhwi", base, theta)


def roi_align(x, rois):
    def samples(first, last, n):
        at = first[:, None, None] - 0.5 + (jnp.arange(2)[:, None] + (jnp.arange(2) + 0.5) / 2) * (last - first)[:, None, None] / 2
        inside = (at >= -1) & (at <= n)
        at = jnp.clip(at, 0, n - 1)
        weight = triangle(at[..., None] - jnp.arange(n))
        return jnp.where(inside[..., None], weight, 0).sum(2) / 2

    rows, columns = samples(rois[:, 1], rois[:, 3], x.shape[2]), samples(rois[:, 0], rois[:, 2], x.shape[3])
    return jnp.einsum("rah,rbw,chw->rcab", rows, columns, x[0])


def max_roi_pool(x, corners):
    def bins(first, last, n):
        size = max(last - first + 1, 1) / 2
        return [[k for k in range(n) if np.floor(b * size) <= k - first < np.ceil((b + 1) * size)] for b in range(2)]

    regions = []
    for region in np.asarray(corners):
        left, top, right, bottom = np.floor(region * 0.5 + 0.5)
        rows, columns = bins(top, bottom, x.shape[2]), bins(left, right, x.shape[3])
        of_bins = [jnp.max(x[0][:, np.array(r)][:, :, np.array(c)], (1, 2)) if r and c else jnp.zeros(x.shape[1])
                   for r in rows for c in columns]
        regions.append(jnp.stack(of_bins, 1).reshape(-1, 2, 2))
    return jnp.stack(regions)


FUNCTIONS = {
    "max_roi_pool": max_roi_pool,
    "resize, bilinear": bilinear,
    "resample, cubic with antialias": lambda x: along(x, 1, 3, keys, 3 / x.shape[1], 2 * -(-x.shape[1] // 3)),
    "resample, of many neighbours": lambda x: along(x, 1, 3, triangle, 0.1, 10, exclude=True),
    "resample, nearest": lambda x: jnp.repeat(x, 2, 0)[:, :, : x.shape[2] // 2 * 2 : 2],
    "center_crop_pad": cropped,
    "grid_sample, linear": grid_sample,
    "grid_sample, linear at corners with borders": lambda x, g: grid_sample(x, g, padding="border", align=True),
    "grid_sample, linear mirrored": lambda x, g: grid_sample(x, g, padding="reflection"),
    "grid_sample, cubic mirrored at corners": lambda x, g: grid_sample(x, g, "cubic", "reflection", True),
    "grid_sample, cubic": lambda x, g: grid_sample(x, g, "cubic"),
    "grid_sample, nearest": lambda x, g: grid_sample(x, g, "nearest"),
    "affine_grid": affine_grid,
    "roi_align": roi_align,
}
