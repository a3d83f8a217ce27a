"""Op rows of tf.image in JAX: colours, sizes, edges, boxes. Images are [..., height, width, channels]."""
import math

import jax
import jax.numpy as jnp

YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
RGB_OF_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
RGB_OF_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]
PIXELS = (-3, -2, -1)


def hsv(x):
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    most, d = jnp.max(x, -1), jnp.max(x, -1) - jnp.min(x, -1)
    turn = jnp.where(most == r, (g - b) / d % 6, jnp.where(most == g, (b - r) / d + 2, (r - g) / d + 4))
    return jnp.stack([turn / 6, d / most, most], -1)


def rgb(x):
    h, s, v = 6 * x[..., 0], x[..., 1], x[..., 2]
    red, green, blue = jnp.abs(h - 3) - 1, 2 - jnp.abs(h - 2), 2 - jnp.abs(h - 4)
    return jnp.stack([v * (1 - s + s * jnp.clip(part, 0, 1)) for part in (red, green, blue)], -1)


def turned(x):
    y = hsv(x)
    return rgb(y.at[..., 0].set((y[..., 0] + 0.3) % 1))


def saturated(x):
    y = hsv(x)
    return rgb(y.at[..., 1].set(jnp.clip(y[..., 1] * 0.7, 0, 1)))


def standardized(x):
    n = math.prod(x.shape[-3:])
    deviation = jnp.maximum(jnp.std(x, PIXELS, keepdims=True), 1 / math.sqrt(n))
    return (x - jnp.mean(x, PIXELS, keepdims=True)) / deviation


def padded(x, top, left, height, width):
    rest = [(0, 0)] * (x.ndim - 3)
    below, right = height - top - x.shape[-3], width - left - x.shape[-2]
    return jnp.pad(x, rest + [(top, below), (left, right), (0, 0)])


def central(x):
    top, left = (int((n - n * 0.5) / 2) for n in x.shape[-3:-1])
    return x[..., top:x.shape[-3] - top, left:x.shape[-2] - left, :]


def cropped_or_padded(x, height=3, width=5):
    top, left = max((x.shape[-3] - height) // 2, 0), max((x.shape[-2] - width) // 2, 0)
    x = x[..., top:top + height, left:left + width, :]
    return padded(x, (height - x.shape[-3]) // 2, (width - x.shape[-2]) // 2, height, width)


def fitted(x, height=4, width=6):
    ratio = max(x.shape[-3] / height, x.shape[-2] / width)
    h, w = (math.floor(n / ratio) for n in x.shape[-3:-1])
    y = jax.image.resize(x, x.shape[:-3] + (h, w) + x.shape[-1:], "linear", antialias=False)
    return padded(y, (height - h) // 2, (width - w) // 2, height, width)


def sobel(x):
    rest = [(0, 0)] * (x.ndim - 3)
    y = jnp.pad(x, rest + [(1, 1), (1, 1), (0, 0)], mode="reflect")
    h, w = x.shape[-3:-1]
    at = lambda i, j: y[..., i:i + h, j:j + w, :]
    down = sum(k * (at(2, j) - at(0, j)) for j, k in enumerate((1, 2, 1)))
    across = sum(k * (at(i, 2) - at(i, 0)) for i, k in enumerate((1, 2, 1)))
    return jnp.stack([down, across], -1)


def variation(x):
    down, across = jnp.abs(jnp.diff(x, axis=-3)), jnp.abs(jnp.diff(x, axis=-2))
    return jnp.sum(down, PIXELS) + jnp.sum(across, PIXELS)


def image_gradients(x):
    down = jnp.diff(x, axis=1, append=x[:, -1:])
    across = jnp.diff(x, axis=2, append=x[:, :, -1:])
    return down + 2 * across


def psnr(a, b):
    return -10 * jnp.log10(jnp.mean(jnp.square(a - b), PIXELS))


def ssim(a, b):
    line = jnp.exp(-jnp.square(jnp.arange(3.0) - 1) / (2 * 1.5**2))
    window = jnp.outer(line, line) / jnp.sum(jnp.outer(line, line))
    h, w = a.shape[-3] - 2, a.shape[-2] - 2
    blur = lambda x: sum(window[i, j] * x[..., i:i + h, j:j + w, :] for i in range(3) for j in range(3))
    product, squares = 2 * blur(a) * blur(b), blur(a)**2 + blur(b)**2
    both, each = 2 * blur(a * b), blur(a * a + b * b)
    c1, c2 = 0.01**2, 0.03**2
    alike = (product + c1) / (squares + c1) * (both - product + c2) / (each - squares + c2)
    return jnp.mean(alike, PIXELS)


def boxed(nearest):
    def crops(x, moved):
        corners = jnp.array([[0.1, 0.2, 0.83, 0.9], [0.7, -0.15, 0.05, 0.55]], jnp.float32)
        boxes = corners.astype(jnp.float64) + 0.01 * moved
        out = []
        for box, image in zip(boxes, (x[1], x[0])):
            h, w = image.shape[:2]
            y = (box[0] + (box[2] - box[0]) * jnp.arange(3) / 2) * (h - 1)
            z = (box[1] + (box[3] - box[1]) * jnp.arange(4) / 3) * (w - 1)
            inside = ((y >= 0) & (y <= h - 1))[:, None] & ((z >= 0) & (z <= w - 1))
            if nearest:
                whole = lambda t, n: jnp.clip(jnp.floor(t + 0.5), 0, n - 1).astype(int)
                found = image[whole(y, h)][:, whole(z, w)]
            else:
                found = between(between(image, y, 0), z, 1)
            out.append(jnp.where(inside[..., None], found, 0.5))
        return jnp.stack(out)
    return crops


def between(image, at, axis):
    n = image.shape[axis]
    low = jnp.clip(jnp.floor(at), 0, n - 1)
    share = (at - low).reshape([-1 if k == axis else 1 for k in range(3)])
    first = jnp.take(image, low.astype(int), axis)
    return first + share * (jnp.take(image, jnp.minimum(low + 1, n - 1).astype(int), axis) - first)


def lanczos(radius):
    return lambda x: jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


def mitchell(x):
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


KERNELS = {
    "lanczos3": lanczos(3),
    "lanczos5": lanczos(5),
    "gaussian": lambda x: jnp.where(x < 1.5, jnp.exp(-2 * x * x), 0),
    "mitchellcubic": mitchell,
}


def by_kernel(kernel, antialias):
    def weights(n, m):  # [m, n]
        wide = max(n / m, 1) if antialias else 1
        at = (jnp.arange(m) + 0.5) * n / m - 0.5
        w = kernel(jnp.abs(at[:, None] - jnp.arange(n)) / wide)
        return w / jnp.sum(w, 1, keepdims=True)
    return by_weights(weights)


def overlaps(n, m):
    edge, pixel = jnp.arange(m)[:, None] * n / m, jnp.arange(n)
    return jnp.maximum(jnp.minimum(edge + n / m, pixel + 1) - jnp.maximum(edge, pixel), 0) * m / n


def by_weights(weights):
    return lambda x: jnp.einsum("...hwc,yh,zw->...yzc", x, weights(x.shape[-3], 3), weights(x.shape[-2], 7))


FUNCTIONS = {
    "rgb_to_grayscale": lambda x: x @ jnp.array([[0.2989], [0.587], [0.114]]),
    "grayscale_to_rgb": lambda x: jnp.repeat(x, 3, -1),
    "rgb_to_hsv": hsv,
    "hsv_to_rgb": rgb,
    "rgb_to_yiq": lambda x: x @ jnp.array(YIQ),
    "yiq_to_rgb": lambda x: x @ jnp.array(RGB_OF_YIQ),
    "rgb_to_yuv": lambda x: x @ jnp.array(YUV),
    "yuv_to_rgb": lambda x: x @ jnp.array(RGB_OF_YUV),
    "adjust_brightness": lambda x: x + 0.25,
    "adjust_contrast": lambda x: 1.5 * x - 0.5 * jnp.mean(x, (-3, -2), keepdims=True),
    "adjust_gamma": lambda x: 2 * jnp.sqrt(x),
    "adjust_hue": turned,
    "adjust_saturation": saturated,
    "per_image_standardization": standardized,
    "central_crop": central,
    "crop_to_bounding_box": lambda x: x[..., 1:3, 0:3, :],
    "pad_to_bounding_box": lambda x: padded(x, 1, 2, 5, 6),
    "resize_with_crop_or_pad": cropped_or_padded,
    "resize_with_pad": fitted,
    "sobel_edges": sobel,
    "total_variation": variation,
    "image_gradients": image_gradients,
    "psnr": psnr,
    "ssim": ssim,
    "crop_and_resize": boxed(False),
    "crop_and_resize, nearest": boxed(True),
    "resize, area": by_weights(overlaps),
}
for name, kernel in KERNELS.items():
    FUNCTIONS[f"resize, {name}"] = by_kernel(kernel, False)
    FUNCTIONS[f"resize, {name}, antialias"] = by_kernel(kernel, True)
