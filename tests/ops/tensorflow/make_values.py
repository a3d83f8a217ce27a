"""Makes values.txt: results and gradients of popular ops by TensorFlow, at ties, kinks, poles, NaN and on empty tensors.

    python make_values.py > values.txt        (TensorFlow 2.21)

A case is `case NAME`, its operands `in DTYPE SHAPE NUMBERS`, its result `out ...`, and, of floats, `grad` lines: the
gradient of sum(result * weights) with respect to each float operand, weights[i] = cos(i) over the flat result.
There is no case where TensorFlow is wrong, or differs by design: x / 0 of integers, the slope of bessel_i1 at 0 (1
instead of 1/2), of weighted_cross_entropy_with_logits at a logit of 0 and of log_poisson_loss at a target of 0, of
cumprod at 0, erf of f64 at infinity (NaN), the slope of softmax_cross_entropy_with_logits for labels that do not sum to
1, of Bessel functions, expint and spence at infinity (NaN), and bicubic resizing without antialias, whose weights come
from a table of 1,024. Constants of float32 in
leaky_relu and gelu: these are in float32.
"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

nan, inf = float("nan"), float("inf")
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 30, -30, inf, -inf, nan])
FINITE = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 3, -3, 6, 7])


def wave(*shape, low=-1.0, high=1.0, phase=0.0):
    n = int(np.prod(shape))
    x = np.sin(np.arange(n) * 0.7 + phase) * 0.5 + 0.5
    return (low + (high - low) * x).reshape(shape)


def spd(n):
    a = wave(n, n)
    return a @ a.T + np.eye(n)


CASES = []


def case(name, f, *inputs, grad=True):
    CASES.append((name, f, inputs, grad))


# One operand, elementwise.
for name, f in {
    "abs": tf.abs, "relu": tf.nn.relu, "relu6": tf.nn.relu6, "elu": tf.nn.elu, "selu": tf.nn.selu,
    "softplus": tf.nn.softplus, "sigmoid": tf.sigmoid, "tanh": tf.tanh, "exp": tf.exp, "expm1": tf.math.expm1,
    "square": tf.square, "floor": tf.floor, "ceil": tf.math.ceil, "round": tf.round, "is_nan": tf.math.is_nan,
    "is_inf": tf.math.is_inf, "is_finite": tf.math.is_finite, "silu": tf.nn.silu, "erf": tf.math.erf,
    "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.2), "gelu": lambda x: tf.nn.gelu(x, approximate=False),
}.items():
    x = EDGES if name not in ("gelu", "silu", "softplus", "erf") else FINITE
    case(name, f, x.astype(np.float32) if name in ("gelu", "leaky_relu") else x)
POSITIVE = np.array([0.0, 1, 0.5, 4, 100, inf, nan])
for name, f in {"sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "log": tf.math.log, "log1p": tf.math.log1p}.items():
    case(name, f, POSITIVE)
    case(name + " of negative numbers", f, np.array([-2.0, -inf]), grad=False)
for name, f in {"lgamma": tf.math.lgamma, "digamma": tf.math.digamma}.items():
    case(name, f, np.array([0.5, 1, 2, 3.5, 30, -0.5]))
for name, f in {"bessel_i0": tf.math.bessel_i0, "bessel_i0e": tf.math.bessel_i0e, "bessel_i1": tf.math.bessel_i1,
                "bessel_i1e": tf.math.bessel_i1e}.items():
    case(name, f, np.array([0.25, 0.5, -1.5, 4, -7.9, 8.1, 30, -100]))
AWAY = np.array([0.25, 0.5, 1, 1.75, 3.9, 5.5, 9, 30])
for name in ("bessel_j0", "bessel_j1", "fresnel_cos", "fresnel_sin", "dawsn"):
    case(name, getattr(tf.math.special, name), np.concatenate([[0.0, -1.5, -7], AWAY]))
for name in ("bessel_y0", "bessel_y1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "expint", "spence"):
    case(name, getattr(tf.math.special, name), AWAY)
    case(name + " at 0 and beyond", getattr(tf.math.special, name), np.array([0.0, -1, -2.5]), grad=False)
case("sinc", tf.experimental.numpy.sinc, np.array([0.5, 1, -1.5, 2.25]))
case("softsign", tf.nn.softsign, FINITE)

# Two operands.
A = np.array([1.0, 2, -1, 0, nan, 1, nan, inf, -0.0])
B = np.array([1.0, 1, 3, 0, 1, nan, nan, -inf, 0.0])
for name, f in {"add": tf.add, "multiply": tf.multiply, "maximum": tf.maximum, "minimum": tf.minimum,
                "less": tf.less, "less_equal": tf.less_equal, "equal": tf.equal, "not_equal": tf.not_equal,
                "squared_difference": tf.math.squared_difference}.items():
    case(name, f, A, B, grad=name not in ("maximum", "minimum"))
case("maximum at ties", tf.maximum, np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
case("minimum at ties", tf.minimum, np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
case("divide_no_nan", tf.math.divide_no_nan, np.array([1.0, 0, 3]), np.array([0.0, 0, 2]))
case("multiply_no_nan", tf.math.multiply_no_nan, np.array([inf, nan, 3]), np.array([0.0, 0, 2]), grad=False)
case("xlogy", tf.math.xlogy, np.array([0.0, 0, 2]), np.array([0.0, 3, 2]))
case("mod", tf.math.mod, np.array([7.0, -7, 7, -7, 0.5]), np.array([3.0, 3, -3, -3, 0.25]))
case("mod of integers", tf.math.mod, np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32))
case("floor_divide of integers", tf.math.floordiv, np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32))
case("truncatediv", tf.truncatediv, np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32))
case("truediv", tf.math.truediv, np.array([7, -7, 1, 0], np.int32), np.array([3, 2, -3, 5], np.int32), grad=False)
case("atan2", tf.math.atan2, np.array([0.0, 1, -1, 2]), np.array([1.0, 0, -1, 3]))
case("pow", tf.pow, np.array([2.0, 0.5, 3, 9]), np.array([3.0, -2, 0, 0.5]))
case("cross", tf.linalg.cross, wave(2, 3), wave(2, 3, phase=1))

# Reductions, along axis 1 of [2, n] with ties, NaN, nothing.
TIES = np.array([[1.0, 3, 3, -2], [0, 0, 0, 0]])
NAN = np.array([[1.0, nan, 3], [inf, 2, -inf]])
NONE = np.zeros((2, 0))
for name, f in {"reduce_sum": tf.reduce_sum, "reduce_mean": tf.reduce_mean, "reduce_max": tf.reduce_max,
                "reduce_min": tf.reduce_min, "reduce_prod": tf.reduce_prod, "reduce_logsumexp": tf.reduce_logsumexp,
                "reduce_variance": tf.math.reduce_variance}.items():
    g = lambda x, f=f: f(x, axis=1)
    case(name, g, TIES)
    if name != "reduce_logsumexp":
        case(name + " with nan", g, NAN, grad=False)
    case(name + " of nothing", g, NONE, grad=False)
case("argmax", lambda x: tf.argmax(x, 1, tf.int32), TIES)
case("argmin", lambda x: tf.argmin(x, 1, tf.int32), TIES)
case("cumsum", lambda x: tf.cumsum(x, 1), TIES)
case("cumsum, exclusive and reverse", lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), TIES)
case("cumprod", lambda x: tf.math.cumprod(x, 1), wave(2, 4, phase=.3))
case("cumulative_logsumexp", lambda x: tf.math.cumulative_logsumexp(x, 1), wave(2, 4, low=-5, high=5))
case("softmax", tf.nn.softmax, TIES)
case("softmax with infinities", tf.nn.softmax, np.array([[-inf, 0, 1], [-inf, -inf, 2]]), grad=False)
case("log_softmax", tf.nn.log_softmax, TIES)
case("l2_normalize", lambda x: tf.math.l2_normalize(x, 1), np.array([[3.0, 4], [0, 0]]), grad=False)
case("top_k", lambda x: tf.math.top_k(x, 2)[0], TIES)
case("top_k indices", lambda x: tf.math.top_k(x, 2)[1], TIES)
case("sort", lambda x: tf.sort(x), np.array([[3.0, 1, 2, 1]]))
case("argsort", lambda x: tf.argsort(x, stable=True), TIES)
case("searchsorted", tf.searchsorted, np.array([1.0, 2, 2, 5]), np.array([0.0, 2, 3, 9]))

# Shapes and indices.
case("gather", lambda x, i: tf.gather(x, i), wave(3, 2), np.array([2, 0, 2], np.int32))
case("where", lambda c, a, b: tf.where(c, a, b), np.array([True, False, True]), np.array([1.0, 2, nan]), np.array([4.0, nan, 6]))
case("one_hot", lambda i: tf.one_hot(i, 3), np.array([0, 2, -1, 3], np.int32))
case("pad reflect", lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), wave(2, 3))
case("pad symmetric", lambda x: tf.pad(x, [[1, 1], [2, 0]], "SYMMETRIC"), wave(2, 3))
case("roll", lambda x: tf.roll(x, 2, 1), wave(2, 5))
case("unravel_index", lambda i: tf.unravel_index(i, [3, 4, 2]), np.array([0, 5, 23, 14], np.int32))
case("invert_permutation", tf.math.invert_permutation, np.array([2, 0, 3, 1], np.int32))
case("confusion_matrix", lambda a, b: tf.math.confusion_matrix(a, b, 3), np.array([0, 2, 2, 1], np.int32), np.array([0, 2, 1, 1], np.int32))
case("saturate_cast", lambda x: tf.saturate_cast(x, tf.uint8), np.array([-3.0, 2.9, 255, 256, 1e9]), grad=False)

# Losses.
LABELS, LOGITS = np.array([0.0, 1, 0.3, 1, 0]), np.array([0.25, -40, 2, 50, 1000])
case("sigmoid_cross_entropy_with_logits", tf.nn.sigmoid_cross_entropy_with_logits, LABELS, LOGITS)
case("weighted_cross_entropy_with_logits", tf.nn.weighted_cross_entropy_with_logits, LABELS, LOGITS, np.array(2.0))
case("softmax_cross_entropy_with_logits", tf.nn.softmax_cross_entropy_with_logits, np.array([[0.25, 0.5, 0.25], [0, 1, 0]]), wave(2, 3, phase=2))
case("sparse_softmax_cross_entropy_with_logits", tf.nn.sparse_softmax_cross_entropy_with_logits, np.array([2, 0], np.int32), wave(2, 3))
case("log_poisson_loss", lambda z, x: tf.nn.log_poisson_loss(z, x), wave(5, low=0, high=3), wave(5, phase=1))
case("log_poisson_loss in full", lambda z, x: tf.nn.log_poisson_loss(z, x, compute_full_loss=True), np.array([0.25, 0.5, 1, 1.5, 4]), wave(5))
case("l2_loss", tf.nn.l2_loss, wave(2, 3))
case("crelu", tf.nn.crelu, FINITE)
case("embedding_lookup", lambda t, i: tf.nn.embedding_lookup(t, i, max_norm=1.0), wave(4, 3, high=2), np.array([[0, 3], [2, 2]], np.int32))

# Linear algebra.
case("solve", tf.linalg.solve, spd(3) + wave(3, 3, phase=3), wave(3, 2))
case("solve, adjoint", lambda a, b: tf.linalg.solve(a, b, adjoint=True), spd(3) + wave(3, 3, phase=3), wave(3, 2))
case("triangular_solve", tf.linalg.triangular_solve, spd(3), wave(3, 2))
case("triangular_solve, upper adjoint", lambda a, b: tf.linalg.triangular_solve(a, b, lower=False, adjoint=True), spd(3), wave(3, 2))
case("cholesky", tf.linalg.cholesky, spd(4))
case("cholesky_solve", tf.linalg.cholesky_solve, np.linalg.cholesky(spd(3)), wave(3, 2))
case("logdet", tf.linalg.logdet, spd(3))
case("slogdet", lambda a: tf.linalg.slogdet(a)[1], wave(3, 3) - np.eye(3))
case("lstsq", lambda a, b: tf.linalg.lstsq(a, b, 0.1), wave(5, 2, phase=.3) + np.eye(5, 2), wave(5, 2))
case("inverse", tf.linalg.inv, spd(3))
case("det", tf.linalg.det, spd(3))
case("band_part", lambda x: tf.linalg.band_part(x, 1, 0), wave(3, 4))
case("tensor_diag", tf.linalg.tensor_diag, wave(2, 2))
case("tensor_diag_part", tf.linalg.tensor_diag_part, wave(2, 3, 2, 3))

# Images.
RGB = np.stack([wave(3, 4, low=0.05, high=.9, phase=p) for p in (0, 1.1, 2.3)], -1)
GRAYS = np.array([[[0.0, 0, 0], [0.5, 0.5, 0.5]], [[1, 0, 0], [0.2, 0.2, 0.8]]])
for name, f in {"rgb_to_grayscale": tf.image.rgb_to_grayscale, "rgb_to_hsv": tf.image.rgb_to_hsv,
                "hsv_to_rgb": tf.image.hsv_to_rgb, "rgb_to_yiq": tf.image.rgb_to_yiq, "yiq_to_rgb": tf.image.yiq_to_rgb,
                "rgb_to_yuv": tf.image.rgb_to_yuv, "yuv_to_rgb": tf.image.yuv_to_rgb,
                "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 1.5),
                "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.25),
                "adjust_gamma": lambda x: tf.image.adjust_gamma(x, 0.5, 2),
                "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.3),
                "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 1.7)}.items():
    case(name, f, RGB.astype(np.float32), grad=False)
    case(name + " of grays", f, GRAYS.astype(np.float32), grad=False)
BYTES = (RGB * 255).astype(np.uint8)
for name, f in {"adjust_brightness of bytes": lambda x: tf.image.adjust_brightness(x, 0.25),
                "adjust_contrast of bytes": lambda x: tf.image.adjust_contrast(x, 1.5),
                "rgb_to_grayscale of bytes": tf.image.rgb_to_grayscale,
                "convert_image_dtype u8 f32": lambda x: tf.image.convert_image_dtype(x, tf.float32),
                "convert_image_dtype u8 i16": lambda x: tf.image.convert_image_dtype(x, tf.int16)}.items():
    case(name, f, BYTES, grad=False)
case("convert_image_dtype f32 u8", lambda x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True), (RGB * 1.2).astype(np.float32), grad=False)
case("per_image_standardization", tf.image.per_image_standardization, RGB.astype(np.float32))
case("central_crop", lambda x: tf.image.central_crop(x, 0.6), wave(5, 7, 2))
case("resize_with_crop_or_pad", lambda x: tf.image.resize_with_crop_or_pad(x, 4, 4), wave(5, 3, 2))
case("resize_with_pad", lambda x: tf.image.resize_with_pad(x, 4, 7), wave(5, 3, 2).astype(np.float32))
case("sobel_edges", tf.image.sobel_edges, wave(1, 4, 5, 2).astype(np.float32))
case("total_variation", tf.image.total_variation, wave(2, 3, 4, 2))
case("image_gradients", lambda x: tf.stack(tf.image.image_gradients(x)), wave(1, 3, 4, 2))
case("psnr", lambda a, b: tf.image.psnr(a, b, 1.0), RGB.astype(np.float32), RGB.astype(np.float32) * .9)
case("ssim", lambda a, b: tf.image.ssim(a, b, 1.0, filter_size=5), wave(8, 9, 2, low=0).astype(np.float32), wave(8, 9, 2, low=0, phase=.4).astype(np.float32), grad=False)
PICTURE = np.stack([wave(5, 4, 2, phase=p) for p in (0, 1)]).astype(np.float32)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0.7, -0.15, 0.05, 0.55], [0, 0, 1, 1], [-0.5, 0.3, 1.4, 0.3]], np.float32)
WHICH = np.array([1, 0, 1, 0], np.int32)
case("crop_and_resize", lambda x, b, i: tf.image.crop_and_resize(x, b, i, [3, 4], extrapolation_value=0.5), PICTURE, BOXES, WHICH)
case("crop_and_resize, one pixel", lambda x, b, i: tf.image.crop_and_resize(x, b, i, [1, 1]), PICTURE, BOXES, WHICH)
case("crop_and_resize, nearest", lambda x, b, i: tf.image.crop_and_resize(x, b, i, [3, 4], method="nearest"), PICTURE, BOXES[:3], WHICH[:3], grad=False)
for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
    for antialias in (False, True) if method not in ("nearest", "area", "bicubic") else (method == "bicubic",):
        for size in ((3, 7), (9, 2)):
            case(f"resize {method}{' antialias' if antialias else ''} {size[0]}",
                 lambda x, m=method, a=antialias, s=size: tf.image.resize(x, s, m, antialias=a),
                 wave(1, 5, 4, 2).astype(np.float32), grad=False)


def line(kind, x):
    x = np.asarray(x)
    names = {"float64": "f64", "float32": "f32", "int32": "i32", "int64": "i64", "bool": "bool", "uint8": "u8", "int16": "i16"}
    digits = "%.17g" if x.dtype == np.float64 else "%.9g"
    numbers = " ".join(digits % float(v) for v in x.ravel())
    print(kind, names[str(x.dtype)], x.ndim, *x.shape, numbers)


for name, f, inputs, grad in CASES:
    operands = [tf.constant(x) for x in inputs]
    floats = [x for x in operands if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        y = f(*operands)
        if y.dtype.is_floating:
            target = tf.reduce_sum(y * tf.cos(tf.reshape(tf.cast(tf.range(tf.size(y)), y.dtype), tf.shape(y))))
    print("case", name)
    for x in inputs:
        line("in", x)
    line("out", y)
    if grad and y.dtype.is_floating:
        for x, g in zip(floats, tape.gradient(target, floats)):
            line("grad", tf.convert_to_tensor(g) if g is not None else tf.zeros_like(x))
