"""Images seen through affine and perspective maps, as gathers: every way to fill what lies outside, with gradients."""
import gradus
from gradus import ops


def _folded(index, size, fill_mode):
    """(the index within an axis of this size, which one beyond its ends stands for; whether it lies within)"""
    within = ops.logical_and(ops.greater_equal(index, 0), ops.less(index, size))
    if fill_mode == "wrap":
        return ops.mod(index, size), within
    if fill_mode == "reflect":  # c b a | a b c | c b a
        place = ops.mod(index, 2 * size)
        return ops.minimum(place, 2 * size - 1 - place), within
    if fill_mode == "mirror" and size > 1:  # c b | a b c | b a
        place = ops.mod(index, 2 * size - 2)
        return ops.minimum(place, 2 * size - 2 - place), within
    return ops.clip_by_value(index, 0, size - 1), within


def _taps(coordinate, interpolation):
    """[(index, weight)] of the pixels beside a coordinate along an axis."""
    if interpolation == "nearest":
        return [(ops.cast(ops.floor(coordinate + 0.5), "int32"), ops.ones_like(coordinate))]
    low = ops.floor(coordinate)
    index, share = ops.cast(low, "int32"), coordinate - low
    return [(index, 1 - share), (index + 1, share)]


def _sources(transforms, height, width):
    """The rows and columns [n, height, width] that the pixels of the results come from: (a0 x + a1 y + a2) / k is the
    column, (b0 x + b1 y + b2) / k the row, k = c0 x + c1 y + 1, for transforms [n, 8] of a, b and c."""
    part = [ops.reshape(column, [-1, 1, 1]) for column in ops.unstack(transforms, -1)]
    y = ops.reshape(ops.range(height, dtype="float32"), [1, height, 1])
    x = ops.reshape(ops.range(width, dtype="float32"), [1, 1, width])
    k = part[6] * x + part[7] * y + 1.0
    return (part[3] * x + part[4] * y + part[5]) / k, (part[0] * x + part[1] * y + part[2]) / k


def projected(images, transforms, output_shape, fill_value=0.0, interpolation="BILINEAR", fill_mode="CONSTANT", name=None):
    """Images [n, height, width, channels] of another size, whose pixels transforms [n or 1, 8] take from the images."""
    images, interpolation, fill_mode = gradus.constant(images), interpolation.lower(), fill_mode.lower()
    count, height, width, _ = images.shape
    transforms = ops.broadcast_to(ops.cast(transforms, "float32"), [count, 8])
    rows, columns = _sources(transforms, int(output_shape[0]), int(output_shape[1]))
    pixels = images if images.dtype.is_floating and images.dtype.itemsize >= 4 else ops.cast(images, "float32")
    outside = ops.cast(gradus.constant(fill_value, "float32"), pixels.dtype)
    result = 0.0
    for row, row_share in _taps(rows, interpolation):
        row, row_within = _folded(row, height, fill_mode)
        for column, column_share in _taps(columns, interpolation):
            column, column_within = _folded(column, width, fill_mode)
            taken = ops.gather_nd(pixels, ops.stack([row, column], -1), batch_dims=1)
            if fill_mode == "constant":
                taken = ops.where(ops.expand_dims(ops.logical_and(row_within, column_within), -1), taken, outside)
            result = result + taken * ops.cast(ops.expand_dims(row_share * column_share, -1), pixels.dtype)
    return ops.cast(result if images.dtype.is_floating else ops.round(result), images.dtype)
