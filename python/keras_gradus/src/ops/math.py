"""keras.ops of mathematics: Keras's, and transforms, whose complex numbers are pairs of tensors there and pairs in the
last axis here."""
from gradus import ops as _ops

from keras_gradus.src import keras_text
from keras_gradus.src.ops.core import cast as _cast, convert_to_tensor as _convert

keras_text.run(globals())


def _pair(x):
    """[..., 2] of (real, imaginary)."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}")
    real, imaginary = (_convert(part) for part in x)
    if tuple(real.shape) != tuple(imaginary.shape):
        raise ValueError("Input `x` should be a tuple of two tensors - real and imaginary.Both the real and imaginary parts "
                         f"should have the same shape. Received: x[0].shape = {real.shape}, x[1].shape = {imaginary.shape}")
    if not real.dtype.is_floating or not imaginary.dtype.is_floating:
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return _ops.stack([real, imaginary], -1)


def _parts(pair):
    return pair[..., 0], pair[..., 1]


def _swapped(x):
    """The two axes before the pairs in each other's place."""
    return _ops.transpose(x, [*range(x.ndim - 3), x.ndim - 2, x.ndim - 3, x.ndim - 1])


def fft(x):
    return _parts(_ops.fft(_pair(x)))


def fft2(x):
    return _parts(_swapped(_ops.fft(_swapped(_ops.fft(_pair(x))))))


def ifft2(x):
    real, imaginary = (_convert(part) for part in x)
    count = real.shape[-2] * real.shape[-1]
    real, imaginary = fft2((real, _ops.negative(imaginary)))
    return real / count, imaginary / -count


def rfft(x, fft_length=None):
    return _parts(_ops.rfft(_convert(x), 0 if fft_length is None else int(fft_length)))


def irfft(x, fft_length=None):
    return _ops.irfft(_pair(x), 0 if fft_length is None else int(fft_length))


def _window(window, length, fft_length, dtype):
    """The window as a tensor [fft_length], with zeros at both sides; ones without one."""
    from gradus.tensorflow import signal
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError('If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. Received: '
                             f"window={window}")
        window = getattr(signal, f"{window}_window")(length, periodic=True, dtype=dtype)
    before = (fft_length - length) // 2
    if window is None:
        return _ops.ones([fft_length], dtype)
    window = _convert(window, dtype=dtype)
    if tuple(window.shape) != (length,):
        raise ValueError("The shape of `window` must be equal to [sequence_length].Received: window "
                         f"shape={tuple(window.shape)}")
    return _ops.pad(window, [(before, fft_length - length - before)])


def _frames(x, length, stride):
    from gradus.tensorflow import signal
    return signal.frame(x, length, stride)


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = _convert(x)
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype.name}")
    if fft_length < sequence_length:
        raise ValueError("`fft_length` must equal or larger than `sequence_length`. Received: "
                         f"sequence_length={sequence_length}, fft_length={fft_length}")
    windowed = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        x = _ops.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2, fft_length // 2)], "reflect")
    return rfft(_frames(x, fft_length, sequence_stride) * windowed)


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    """The signal whose frames these are: windowed again, and divided by the sum of squares of all windows over a place."""
    from gradus.tensorflow import signal
    pair = _pair(x)
    frames = _ops.irfft(pair, fft_length)
    if window is not None:
        frames = frames * _inverse(_window(window, sequence_length, fft_length, pair.dtype), sequence_stride)
    summed = signal.overlap_and_add(frames, sequence_stride)
    start = fft_length // 2 if center else 0
    end = start + length if length is not None else summed.shape[-1] - (fft_length // 2 if center else 0)
    return summed[..., start:end]


def _inverse(window, stride):
    """The window divided by the sum of squares of those that lie over each of its places, one every `stride` places."""
    count = window.shape[0]
    overlaps = -(-count // stride)
    squares = _ops.pad(window * window, [(0, overlaps * stride - count)])
    total = _ops.reduce_sum(_ops.reshape(squares, [overlaps, stride]), axis=0)
    return window / _ops.tile(total, [overlaps])[:count]


def _with_count(name, of_none=None):
    """A segment's function whose number of segments may be left out: one more than the largest id. of_none is what a
    segment of floats without elements has, if it is not the op's value."""
    segment = getattr(_ops, f"unsorted_segment_{name}")

    def of_segments(data, segment_ids, num_segments=None, sorted=False):
        data, ids = _convert(data), _cast(_convert(segment_ids), "int32")
        count = int(_ops.reduce_max(ids)) + 1 if num_segments is None else int(num_segments)
        result = segment(data, ids, count)
        if of_none is None or not data.dtype.is_floating:
            return result
        is_empty = _ops.equal(_ops.unsorted_segment_sum(_ops.ones_like(data), ids, count), 0)
        return _ops.where(is_empty, _convert(of_none, dtype=data.dtype), result)
    return of_segments


segment_sum, segment_prod = _with_count("sum"), _with_count("prod")
segment_max, segment_min = _with_count("max", -float("inf")), _with_count("min", float("inf"))
