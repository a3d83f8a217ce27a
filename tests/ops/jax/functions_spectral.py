"""Op rows of cosine and Fourier transforms and of frames in JAX."""
import jax.numpy as jnp
import numpy as np


def basis(kind, n):
    t, k = np.arange(n)[:, None], np.arange(n)[None, :]
    if kind == 1:
        ends = np.where((t == 0) | (t == n - 1), 1, 2)
        return ends * np.cos(np.pi * t * k / (n - 1))
    if kind == 2:
        return 2 * np.cos(np.pi * k * (2 * t + 1) / (2 * n))
    if kind == 3:
        return np.where(t == 0, 1, 2) * np.cos(np.pi * t * (2 * k + 1) / (2 * n))
    return 2 * np.cos(np.pi * (2 * k + 1) * (2 * t + 1) / (4 * n))


def dct(kind, ortho=False, length=None):
    def run(x):
        n = length or x.shape[-1]
        x = x[..., :n]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
        matrix = basis(kind, n)
        if ortho:
            matrix = matrix / np.linalg.norm(matrix, axis=1 if kind == 3 else 0, keepdims=True)
        return x @ matrix
    return run


def paired(z):
    return jnp.stack([z.real, z.imag], -1)


def frame(x, length, step, axis=-1):
    count = max(0, 1 + (x.shape[axis] - length) // step)
    return jnp.take(x, np.arange(count)[:, None] * step + np.arange(length), axis=axis)


def overlap_and_add(x, step):
    count, length = x.shape[-2:]
    y = jnp.zeros(x.shape[:-2] + ((count - 1) * step + length,), x.dtype)
    for k in range(count):
        y = y.at[..., k * step:k * step + length].add(x[..., k, :])
    return y


BACK = {1: 1, 2: 3, 3: 2, 4: 4}
FUNCTIONS = {f"dct of type {kind}": dct(kind) for kind in BACK}
FUNCTIONS |= {f"idct of type {kind}, ortho": dct(BACK[kind], True) for kind in (2, 3, 4)}
FUNCTIONS |= {
    "dct, cut": dct(2, length=3),
    "dct, filled": dct(2, True, 6),
    "mfccs_from_log_mel_spectrograms": lambda x: dct(2)(x) / np.sqrt(2 * x.shape[-1]),
    "fft": lambda x: paired(jnp.fft.fft(x[..., 0] + 1j * x[..., 1])),
    "ifft": lambda x: paired(jnp.fft.ifft(x[..., 0] + 1j * x[..., 1])),
    "rfft": lambda x: paired(jnp.fft.rfft(x)),
    "irfft": lambda x: jnp.fft.irfft(x[..., 0] + 1j * x[..., 1], 5),
    "fftshift": jnp.fft.fftshift,
    "ifftshift": jnp.fft.ifftshift,
    "frame": lambda x: frame(x, 3, 2),
    "frame, padded": lambda x: frame(
        jnp.pad(x, [(0, (x.shape[0] + 1) // 2 * 2 + 1 - x.shape[0]), (0, 0)], constant_values=9), 3, 2, 0),
    "overlap_and_add": lambda x: overlap_and_add(x, 2),
}
