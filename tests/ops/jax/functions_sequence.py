"""Op rows of normalisations, attention and recurrent networks, in JAX."""
import jax
import jax.numpy as jnp


def along(parameter, x, axis):
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    return parameter.reshape(shape)


def standardized(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) * jax.lax.rsqrt(x.var(axes, keepdims=True) + epsilon)


def batch(x, mean, variance, scale, offset):
    y = (x - along(mean, x, 1)) * jax.lax.rsqrt(along(variance, x, 1) + 1e-3)
    return y * along(scale, x, 1) + along(offset, x, 1)


def instance(x, scale, offset):
    return standardized(x, tuple(range(2, x.ndim)), 1e-3) * along(scale, x, 1) + along(offset, x, 1)


def groups(x, scale, offset):
    parts = x.reshape(x.shape[:-1] + (2, x.shape[-1] // 2))
    y = standardized(parts, tuple(i for i in range(1, parts.ndim) if i != parts.ndim - 2), 1e-2)
    return y.reshape(x.shape) * scale + offset


def responses(before, after):
    def f(x):
        n = x.shape[1]
        i = jnp.arange(n)
        near = (i[None, :] >= i[:, None] - before) & (i[None, :] <= i[:, None] + after)
        sums = jnp.moveaxis(jnp.tensordot(jnp.square(x), near.astype(x.dtype), [[1], [1]]), -1, 1)
        return x / (2 + 0.5 * sums) ** 0.75
    return f


def attention(q, k, v, mask=None, added=None, softcap=0.0):
    share = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, share, 1), jnp.repeat(v, share, 1)
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(1.0 * q.shape[-1])
    if softcap:
        scores = softcap * jnp.tanh(scores / softcap)
    if added is not None:
        scores = scores + added
    if mask is None:
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)
    mask = jnp.broadcast_to(mask, scores.shape)
    left = mask.any(-1, keepdims=True)
    weights = jax.nn.softmax(jnp.where(mask, scores, jnp.where(left, -jnp.inf, 0)), -1)
    return jnp.einsum("bhqk,bhkd->bhqd", jnp.where(left, weights, 0), v)


def ahead(q, k, offset=0):
    return jnp.arange(k.shape[2])[None, :] - (jnp.arange(q.shape[2])[:, None] + offset)


def with_mask(q, k, v, mask):
    missing = k.shape[2] - mask.shape[-1]
    mask = jnp.pad(mask != 0, [(0, 0)] * (mask.ndim - 1) + [(0, missing)])
    return attention(q, k, v, mask & (ahead(q, k) <= 0))


def left_without(q, k, v):
    allowed = jnp.array([[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], bool)
    return attention(q, k, v, allowed, allowed.astype(q.dtype))


def after_past(q, k, v, past_k, past_v):
    k, v = jnp.concatenate([past_k, k], 2), jnp.concatenate([past_v, v], 2)
    return attention(q, k, v, ahead(q, k, past_k.shape[2]) <= 0)


def within_lengths(q, k, v, lengths):
    lengths = lengths.reshape(-1, 1, 1, 1)
    distance = ahead(q, k)[None, None] - (lengths - q.shape[2])
    return attention(q, k, v, (jnp.arange(k.shape[2]) < lengths) & (distance <= 0) & (distance >= -1))


def turned(a, b, c, s):
    return a * c - b * s, b * c + a * s


def rotary(x, c, s):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate(turned(a, b, c, s), -1)


def rotary_of_neighbours(x, c, s, positions):
    p = positions.astype(jnp.int32)
    pairs = x[..., :4].reshape(x.shape[:-1] + (2, 2))
    y = jnp.stack(turned(pairs[..., 0], pairs[..., 1], c[p][:, None], s[p][:, None]), -1)
    return jnp.concatenate([y.reshape(x.shape[:-1] + (4,)), x[..., 4:]], -1)


def linear_attention(heads, groups):
    def f(q, k, v, decay=None, beta=None):
        split = lambda x, n: x.reshape(x.shape[:2] + (n, -1))
        q, k, v = split(q, heads), split(k, groups), split(v, groups)
        state, ys = jnp.zeros(k.shape[:1] + (groups, k.shape[-1], v.shape[-1])), []
        for t in range(q.shape[1]):
            written = v[:, t]
            if decay is not None:
                state = state * jnp.exp(split(decay, groups)[:, t])[..., None]
                written = beta[:, t, :, None] * (written - jnp.einsum("bgdm,bgd->bgm", state, k[:, t]))
            state = state + k[:, t, :, :, None] * written[:, :, None, :]
            read = jnp.repeat(state, heads // groups, 1)
            ys.append(jnp.einsum("bhd,bhdm->bhm", q[:, t], read) / jnp.sqrt(1.0 * q.shape[-1]))
        y = jnp.stack(ys, 1)
        return y.reshape(y.shape[:2] + (-1,))
    return f


def over_time(x, h, c, step, lengths=None, reverse=False, has_cell=False):
    """The sequence + 2 * the last state + 3 * the last cell."""
    ys, times = [None] * x.shape[0], range(x.shape[0])
    for t in reversed(times) if reverse else times:
        new_h, new_c = step(x[t], h, c)
        there = True if lengths is None else (t < lengths)[:, None]
        h, c = jnp.where(there, new_h, h), jnp.where(there, new_c, c)
        ys[t] = jnp.where(there, new_h, 0)
    return jnp.stack(ys) + 2 * h + (3 * c if has_cell else 0)


def nothing(x, units):
    return jnp.zeros((x.shape[1], units))


def simple(x, w, r, b):
    h = nothing(x, r.shape[0])
    return over_time(x, h, h, lambda x, h, c: (jnp.tanh(x @ w + h @ r + b), h))


def simple_backwards(x, w, r, h, lengths):
    step = lambda x, h, c: (jnp.clip(x @ w + h @ r, -1.5, 1.5) * 0.5 + 0.25, h)
    return over_time(x, h, h, step, lengths, reverse=True)


def gru(reset_after, reverse):
    def f(x, w, r, biases):
        n = r.shape[0]

        def step(x, h, c):
            a, s = x @ w + biases[0], h @ r + biases[1]
            z, reset = (jax.nn.sigmoid(a[:, k * n:(k + 1) * n] + s[:, k * n:(k + 1) * n]) for k in (0, 1))
            inner = reset * s[:, 2 * n:] if reset_after else (reset * h) @ r[:, 2 * n:] + biases[1, 2 * n:]
            new = z * h + (1 - z) * jnp.tanh(a[:, 2 * n:] + inner)
            return new, new

        return over_time(x, nothing(x, n), nothing(x, n), step, reverse=reverse)
    return f


def lstm_step(w, r, b, p, coupled=False):
    n = r.shape[0]

    def step(x, h, c):
        a = x @ w + h @ r + b
        gate = lambda k: a[:, k * n:(k + 1) * n]
        i = jax.nn.sigmoid(gate(0) + p[:n] * c)
        f = 1 - i if coupled else jax.nn.sigmoid(gate(1) + p[n:2 * n] * c)
        c = f * c + i * jnp.tanh(gate(2))
        return jax.nn.sigmoid(gate(3) + p[2 * n:] * c) * jnp.tanh(c), c

    return step


def lstm(x, w, r, b):
    n = r.shape[0]
    return over_time(x, nothing(x, n), nothing(x, n), lstm_step(w, r, b, jnp.zeros(3 * n)), has_cell=True)


def full_lstm(x, kernels, p, states):
    step = lstm_step(kernels[0], kernels[1], jnp.zeros(8), p)
    return over_time(x, states[0], states[1], step, jnp.array([2, 3]), has_cell=True)


def coupled_lstm(x, w, r):
    step = lstm_step(w, r, jnp.zeros(8), jnp.zeros(6), coupled=True)
    return over_time(x, nothing(x, 2), nothing(x, 2), step, reverse=True, has_cell=True)


FUNCTIONS = {
    "attention after past keys": after_past,
    "attention that is left without keys": left_without,
    "attention with a boolean mask": with_mask,
    "attention with an added mask": lambda q, k, v, m: attention(q, k, v, added=m),
    "attention within lengths and a window": within_lengths,
    "attention, causal": lambda q, k, v: attention(q, k, v, ahead(q, k) <= 0, softcap=0.5),
    "batch_normalization": batch,
    "batch_normalization in training": lambda x, s, o: standardized(x, (0, 1), 1e-3) * s + o,
    "group_normalization": groups,
    "gru": gru(True, False),
    "gru that resets before, backwards": gru(False, True),
    "instance_normalization": instance,
    "l2_normalize": lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
    "layer_normalization": lambda x, s, o: standardized(x, -1, 1e-3) * s + o,
    "layer_normalization over two axes": lambda x, s: standardized(x, (1, 2), 1e-5) * s,
    "linear_attention": linear_attention(2, 1),
    "linear_attention with decay and the delta rule": linear_attention(2, 2),
    "local_response_normalization": responses(1, 1),
    "local_response_normalization, wide": responses(1, 20),
    "lp_normalize 1": lambda x: x / jnp.sum(jnp.abs(x), -1, keepdims=True),
    "lp_normalize 2": lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
    "lstm": lstm,
    "lstm that couples its gates, backwards": coupled_lstm,
    "lstm with peepholes, states and lengths": full_lstm,
    "mean_variance_normalization": lambda x: (x - x.mean((0, 2), keepdims=True)) / (x.std((0, 2), keepdims=True) + 1e-9),
    "rms_normalization": lambda x, s, o: x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-3) * s + o,
    "rotary_embedding": rotary,
    "rotary_embedding of neighbours, by positions": rotary_of_neighbours,
    "scaled_dot_product_attention": attention,
    "simple_rnn": simple,
    "simple_rnn backwards, clipped, within lengths": simple_backwards,
}
