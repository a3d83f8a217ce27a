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
    """The cosine transform of the last axis."""
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
    """Moves the frequency 0 back to the begin."""
    return ops.ifftshift(x, axis=axes)
