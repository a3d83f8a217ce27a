"""tf.image: colours, sizes, boxes, measures of quality."""
from .. import ops
from ._tables import fill

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
    """Differences of neighbouring rows, and of neighbouring columns."""
    return tuple(ops.image_gradients(image))


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    """Images of another size."""
    return ops.resize(images, size, method=method, preserve_aspect_ratio=preserve_aspect_ratio, antialias=antialias)


def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    """Images of another size, whose sides keep their ratio, with zeros around them."""
    return ops.resize_with_pad(image, target_height, target_width, method=method, antialias=antialias)


def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0, name=None):
    """Boxes of images, resized to one size."""
    return ops.crop_and_resize(image, boxes, box_indices, crop_size, method=method, extrapolation_value=extrapolation_value)


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """The index of structural similarity."""
    return ops.ssim(img1, img2, max_val, filter_size=filter_size, filter_sigma=filter_sigma, k1=k1, k2=k2)
