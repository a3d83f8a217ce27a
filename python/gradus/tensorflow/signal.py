"""tf.signal: windows, frames, transforms. Complex numbers are pairs in the last axis, as everywhere in Gradus."""
from .. import ops
from ._tables import fill

TABLE = """
frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1)
hamming_window(window_length, periodic=True, dtype="float32") = hamming_window(n, periodic, dtype)
hann_window(window_length, periodic=True, dtype="float32") = hann_window(n, periodic, dtype)
kaiser_bessel_derived_window(window_length, beta=12.0, dtype="float32") = kaiser_bessel_derived_window(n, beta, dtype)
kaiser_window(window_length, beta=12.0, dtype="float32") = kaiser_window(n, beta, dtype)
mfccs_from_log_mel_spectrograms(log_mel_spectrograms)
overlap_and_add(signal, frame_step)
vorbis_window(window_length, dtype="float32") = vorbis_window(n, dtype)
linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0, upper_edge_hertz=3800.0, dtype="float32")
"""
fill(globals(), TABLE)


def dct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The cosine transform of the last axis, of type 1 to 4. n cuts or zero-pads it; norm "ortho" scales to an orthogonal
    transform."""
    if axis != -1:
        raise ValueError(f"dct: axis is -1, as in TensorFlow, not {axis}")
    return ops.dct(input, type=type, n=n, norm=norm)


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The inverse of dct."""
    if axis != -1:
        raise ValueError(f"idct: axis is -1, as in TensorFlow, not {axis}")
    return ops.idct(input, type=type, n=n, norm=norm)


def fftshift(x, axes=None, name=None):
    """Moves the frequency 0 to the middle."""
    return ops.fftshift(x, axis=axes)


def ifftshift(x, axes=None, name=None):
    """Moves the frequency 0 back to the beginning."""
    return ops.ifftshift(x, axis=axes)


def _length(fft_length, axes=1):
    """The lengths of a transform from TensorFlow's forms: an int, or one number for each axis; 0 stands for the input's
    length."""
    if fft_length is None:
        return [0] * axes
    return [int(n) for n in (fft_length if hasattr(fft_length, "__len__") else [fft_length])]


def fft(input, name=None):
    """The Fourier transform of pairs [..., n, 2], or of real numbers [..., n, 1]: pairs [..., n, 2]."""
    return ops.fft(input)


def ifft(input, name=None):
    """The inverse of fft: pairs [..., n, 2] in and out."""
    return ops.ifft(input)


def rfft(input_tensor, fft_length=None, name=None):
    """The Fourier transform of real numbers [..., n]: pairs [..., fft_length / 2 + 1, 2]."""
    return ops.rfft(input_tensor, _length(fft_length)[0])


def irfft(input_tensor, fft_length=None, name=None):
    """The inverse of rfft: pairs [..., m, 2] give real numbers [..., fft_length], by default 2 (m - 1)."""
    return ops.irfft(input_tensor, _length(fft_length)[0])


def _along_rows(transform, pairs):
    """A transform of pairs [..., height, width, 2] along the height."""
    rank = ops.shape(pairs).shape[0]
    order = [*range(rank - 3), rank - 2, rank - 3, rank - 1]
    return ops.transpose(transform(ops.transpose(pairs, order)), order)


def fft2d(input, name=None):
    """fft along the last two axes of pairs [..., height, width, 2]."""
    return _along_rows(ops.fft, ops.fft(input))


def ifft2d(input, name=None):
    """The inverse of fft2d."""
    return _along_rows(ops.ifft, ops.ifft(input))


def _rows_of_length(x, axis, length):
    """The first `length` elements along an axis, with zeros after the existing ones; all for 0."""
    if length == 0:
        return x
    size = ops.add(x, 0).shape[axis]
    if size > length:
        return ops.split(x, sizes=[length, size - length], axis=axis)[0]
    rank = ops.shape(x).shape[0]
    pairs = [(0, length - size if at == axis % rank else 0) for at in range(rank)]
    return x if size == length else ops.pad(x, pairs, 0)


def rfft2d(input_tensor, fft_length=None, name=None):
    """The Fourier transform of real numbers [..., height, width]: pairs [..., height, width / 2 + 1, 2]."""
    rows, columns = _length(fft_length, 2)
    return _along_rows(ops.fft, ops.rfft(_rows_of_length(input_tensor, -2, rows), columns))


def irfft2d(input_tensor, fft_length=None, name=None):
    """The inverse of rfft2d: real numbers [..., height, width]."""
    rows, columns = _length(fft_length, 2)
    return ops.irfft(_along_rows(ops.ifft, _rows_of_length(input_tensor, -3, rows)), columns)


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    """The Fourier transforms of frames times a window: real signals [..., samples] give pairs [..., frames, fft_length / 2 +
    1, 2]. The default fft_length is the next power of two from frame_length on."""
    frame_length, frame_step = int(frame_length), int(frame_step)
    frames = frame(signals, frame_length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=frames.dtype)
    return ops.rfft(frames, _power_of_two(frame_length) if fft_length is None else int(fft_length))


def _power_of_two(least):
    return 1 << max(least - 1, 0).bit_length()


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    """The signals whose frames have these transforms: pairs [..., frames, fft_length / 2 + 1, 2] give [..., samples]. It
    inverts stft() if window_fn is inverse_stft_window_fn(frame_step)."""
    frame_length, frame_step = int(frame_length), int(frame_step)
    frames = ops.irfft(stfts, _power_of_two(frame_length) if fft_length is None else int(fft_length))
    frames = _rows_of_length(frames, -1, frame_length)
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    """The window with which inverse_stft() inverts stft() with forward_window_fn: a function of the frame's length and the
    dtype."""
    frame_step = int(frame_step)

    def inverse(frame_length, dtype="float32"):
        forward = forward_window_fn(frame_length, dtype=dtype)
        overlaps = -(-frame_length // frame_step)
        squares = ops.pad(ops.square(forward), [(0, overlaps * frame_step - frame_length)], 0)
        sums = ops.reduce_sum(ops.reshape(squares, [overlaps, frame_step]), axis=0)
        return forward / ops.tile(sums, [overlaps])[:frame_length]
    return inverse
