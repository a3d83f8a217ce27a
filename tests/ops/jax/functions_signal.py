"""Op rows of Fourier transforms and windows, in JAX."""
import jax
import jax.numpy as jnp
import jax.scipy.fft


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


def dct(x, type=2, n=None, ortho=False):
    n = n or x.shape[-1]
    x = x[..., :n]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
    t, k = jnp.arange(n)[:, None], jnp.arange(n)
    weight = {1: lambda: jnp.where((t == 0) | (t == n - 1), 1, 2) * jnp.cos(jnp.pi * k * t / (n - 1)),
              2: lambda: 2 * jnp.cos(jnp.pi * k * (2 * t + 1) / (2 * n)),
              3: lambda: jnp.where(t == 0, 1, 2) * jnp.cos(jnp.pi * t * (2 * k + 1) / (2 * n)),
              4: lambda: 2 * jnp.cos(jnp.pi * (2 * t + 1) * (2 * k + 1) / (4 * n))}[type]()
    if ortho:
        weight *= {2: lambda: jnp.where(k == 0, jnp.sqrt(1 / (4 * n)), jnp.sqrt(1 / (2 * n))),
                   3: lambda: jnp.where(t == 0, jnp.sqrt(1 / n), jnp.sqrt(1 / (2 * n))),
                   4: lambda: jnp.sqrt(1 / (2 * n))}[type]()
    return x @ weight


FUNCTIONS = {
    "dct": lambda x: jax.scipy.fft.dct(x),
    "dct, type 1": lambda x: dct(x, 1),
    "dct, type 3": lambda x: dct(x, 3),
    "dct, type 4": lambda x: dct(x, 4),
    "dct, ortho, padded": lambda x: jax.scipy.fft.dct(x, n=7, norm="ortho"),
    "dct, ortho, type 3": lambda x: dct(x, 3, ortho=True),
    "dct, ortho, type 4": lambda x: dct(x, 4, ortho=True),
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
