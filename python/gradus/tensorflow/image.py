"""tf.image: colours, sizes, boxes, measures of quality."""
from .. import ops, random as _random
from ._seeds import drawn, key
from ._tables import fill
from .io import decode_image, decode_jpeg, decode_png  # noqa: F401
from .tensors import convert_to_tensor as _tensor

TABLE = """
adjust_brightness(image, delta)
adjust_contrast(images, contrast_factor)
adjust_gamma(image, gamma=1, gain=1)
adjust_hue(image, delta)
adjust_saturation(image, saturation_factor)
central_crop(image, central_fraction)
convert_image_dtype(image, dtype, saturate=False)
crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width)
flip_left_right(image)
flip_up_down(image)
grayscale_to_rgb(images)
hsv_to_rgb(images)
pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width)
per_image_standardization(image) = per_image_standardization(images)
psnr(a, b, max_val)
resize_with_crop_or_pad(image, target_height, target_width)
rgb_to_grayscale(images)
rgb_to_hsv(images)
rgb_to_yiq(images)
rgb_to_yuv(images)
rot90(image, k=1)
sobel_edges(image)
total_variation(images)
yiq_to_rgb(images)
yuv_to_rgb(images)
"""
fill(globals(), TABLE)


def image_gradients(image):
    """(dy, dx): differences of neighbouring rows and of neighbouring columns, in the shape of image [n, h, w, c]."""
    return tuple(ops.image_gradients(image))


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    """Images [..., h, w, c] resized to `size`, (height, width). Integers give float32, except with "nearest"."""
    antialias = antialias and method not in ("nearest", "area")  # which have no wider window
    return ops.resize(images, size, method=method, preserve_aspect_ratio=preserve_aspect_ratio, antialias=antialias)


def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    """Images resized to fit into the size with their aspect ratio kept, and padded with zeros."""
    antialias = antialias and method not in ("nearest", "area")
    return ops.resize_with_pad(image, target_height, target_width, method=method, antialias=antialias)


def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0, name=None):
    """Boxes [n, 4] (y1, x1, y2, x2), in shares of the image, cut out of images [b, h, w, c] and resized: [n, *crop_size,
    c]."""
    return ops.crop_and_resize(image, boxes, box_indices, crop_size, method=method, extrapolation_value=extrapolation_value)


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """The structural similarity of each pair of images, [...]."""
    return ops.ssim(img1, img2, max_val, filter_size=filter_size, filter_sigma=filter_sigma, k1=k1, k2=k2)


class ResizeMethod:
    """Methods of resize()."""
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def extract_patches(images, sizes, strides, rates, padding, name=None):
    """Windows of images [n, h, w, c], as [n, rows, columns, window]: sizes, strides and rates as [1, rows, columns, 1]."""
    return ops.extract_patches(images, list(sizes)[1:3], strides=list(strides)[1:3], rates=list(rates)[1:3], padding=padding)


# ---- at random: by the global seed, or by a seed of two numbers

def _number(low, high, seed, stateless):
    """One number in [low, high)."""
    if stateless is not None:
        return _random.stateless_uniform([], stateless, low=low, high=high)
    return drawn("uniform", seed, [], low=low, high=high)


def _flipped(image, axis, seed, stateless):
    """Each image flipped with probability 1/2, each image of a batch independently."""
    image = _tensor(image)
    shape = [] if image.ndim == 3 else [image.shape[0], 1, 1, 1]
    draws = drawn("uniform", seed, shape) if stateless is None else _random.stateless_uniform(shape, stateless)
    return ops.where(draws < 0.5, ops.flip(image, [image.ndim + axis]), image)


def random_flip_left_right(image, seed=None):
    """The image, or its mirror image, each with probability 1/2."""
    return _flipped(image, -2, seed, None)


def random_flip_up_down(image, seed=None):
    """The image, or the image upside down, each with probability 1/2."""
    return _flipped(image, -3, seed, None)


def stateless_random_flip_left_right(image, seed):
    """random_flip_left_right by a seed of two numbers."""
    return _flipped(image, -2, None, seed)


def stateless_random_flip_up_down(image, seed):
    """random_flip_up_down by a seed of two numbers."""
    return _flipped(image, -3, None, seed)


def _bound(name, value):
    if value < 0:
        raise ValueError(f"{name} is not negative, not {value}")
    return value


def _brighter(image, delta):
    """adjust_brightness by a tensor: integers are converted to [0, 1], and back."""
    image = _tensor(image)
    if "int" not in image.dtype.name:
        return ops.add(image, ops.cast(delta, image.dtype))
    return ops.convert_image_dtype(ops.convert_image_dtype(image, "float32") + delta, image.dtype, saturate=True)


def random_brightness(image, max_delta, seed=None):
    """adjust_brightness by a random number in [-max_delta, max_delta). ValueError for a negative max_delta."""
    return _brighter(image, _number(-_bound("max_delta", max_delta), max_delta, seed, None))


def stateless_random_brightness(image, max_delta, seed):
    """random_brightness by a seed of two numbers."""
    return _brighter(image, _number(-_bound("max_delta", max_delta), max_delta, None, seed))


def _contrast(images, factor):
    x = ops.cast(images, "float32")
    mean = ops.reduce_mean(x, axis=[-3, -2], keepdims=True)
    return ops.saturate_cast((x - mean) * factor + mean, _tensor(images).dtype)


def random_contrast(image, lower, upper, seed=None):
    """adjust_contrast by a random factor in [lower, upper). ValueError for a negative bound."""
    return _contrast(image, _number(_bound("lower", lower), upper, seed, None))


def stateless_random_contrast(image, lower, upper, seed):
    """random_contrast by a seed of two numbers."""
    return _contrast(image, _number(_bound("lower", lower), upper, None, seed))


def _offsets(image, size, seed, stateless):
    """The offsets of a crop of this size, one for each axis."""
    shape = tuple(image.shape)
    size = [int(n) for n in size]
    if len(size) != len(shape) or any(n > m for n, m in zip(size, shape)):
        raise ValueError(f"random_crop: a crop of {size} of an image of {list(shape)}")
    # One key for the crop, with a part for each axis: equal numbers for all axes would draw offsets on a diagonal.
    base = stateless if stateless is not None else None if seed is None else key(seed)
    offsets = []
    for axis, (n, m) in enumerate(zip(size, shape)):
        options = {"low": 0, "high": m - n + 1, "dtype": "int32"}
        if n == m:
            offsets.append(None)
        elif base is not None:
            offsets.append(_random.stateless_integers([], _random.stateless_fold_in(base, axis), **options))
        else:
            offsets.append(_random.integers([], **options))
    return size, offsets


def _cropped(value, size, seed, stateless):
    value = _tensor(value)
    size, offsets = _offsets(value, size, seed, stateless)
    for axis, (n, offset) in enumerate(zip(size, offsets)):
        if offset is not None:
            value = ops.gather(value, ops.range(n) + offset, axis=axis)
    return value


def random_crop(value, size, seed=None, name=None):
    """A part of this size at a random position. ValueError if it is larger than `value`."""
    return _cropped(value, size, seed, None)


def stateless_random_crop(value, size, seed, name=None):
    """random_crop by a seed of two numbers."""
    return _cropped(value, size, None, seed)
