"""Op rows of Fourier transforms and windows, in JAX."""
import jax.numpy as jnp


def as_complex(x):
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def as_parts(z):
    return jnp.stack([z.real, z.imag], -1)


def stft(signal, window):
    frames = 1 + (signal.shape[1] - 4) // 3
    index = 3 * jnp.arange(frames)[:, None] + jnp.arange(4)
    return as_parts(jnp.fft.rfft(signal[:, index, 0] * window, axis=-1))


def cosine(n, period, *a):
    angle = 2 * jnp.pi * jnp.arange(n) / period
    return sum((-1) ** k * c * jnp.cos(k * angle) for k, c in enumerate(a))


FUNCTIONS = {
    "dft, complex": lambda x: as_parts(jnp.fft.fft(as_complex(x), axis=1)),
    "dft, of a prime length": lambda x: as_parts(jnp.fft.fft(as_complex(x), axis=1)),
    "dft, real, padded, onesided": lambda x: as_parts(jnp.fft.rfft(x[..., 0], 9, axis=1)),
    "dft, inverse": lambda x: as_parts(jnp.fft.ifft(as_complex(x), axis=1)),
    "dft, inverse, onesided": lambda x: jnp.fft.irfft(as_complex(x), axis=1)[..., None],
    "stft": stft,
    "hann_window": lambda: cosine(10, 10, 0.5, 0.5),
    "hamming_window, symmetric": lambda: cosine(10, 9, 0.54, 0.46),
    "blackman_window": lambda: cosine(7, 7, 0.42, 0.5, 0.08),
    "window of one": lambda: jnp.ones(1),
}
