"""Op rows that move elements, of products, of indexing and of control flow, in JAX."""
import jax
import jax.numpy as jnp


def scan(start, xs):
    last, ys = jax.lax.scan(lambda s, x: (jnp.tanh(s * x) + s, s * x * start), start, xs)
    return last + jnp.sum(ys, axis=0)


def repeated(x, y):
    t, k = x, 0
    while float(jnp.sum(jax.lax.stop_gradient(t))) < 100 and k < 4:
        t, k = t * t + y, k + 1
    return t


def recomputed(a, b):
    return (jnp.sin(a) * b) * (a + jnp.square(b) * a)


def chunks(x, start):
    return x * start * (start + jnp.sum(x, axis=0))


def integers(x):
    return x.astype(jnp.int32)


FUNCTIONS = {
    "barrier": lambda x, y: 2 * x,
    "to": lambda x: 2 * x,
    "broadcast_to": lambda x: jnp.broadcast_to(x, (2, 3, 4)),
    "call": recomputed,
    "concat": lambda *x: jnp.concatenate(x, 1),
    "cond": lambda a, b: jax.lax.cond(jnp.sum(a) > 0, lambda: jnp.sin(a) * b, lambda: jnp.square(b) + a),
    "custom_call": lambda a, b: jnp.sin(a) * b,
    "einsum": lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b),
    "expand_dims": lambda x: jnp.expand_dims(x, 1),
    "flip_left_right": lambda x: jnp.flip(x, -2),
    "gather": lambda x, i: jnp.take(x, integers(i), axis=1),
    "gather_nd": lambda x, i: x[integers(i)[:, 0], integers(i)[:, 1]],
    "matmul": jnp.matmul,
    "meshgrid": lambda a, b: jnp.meshgrid(a, b)[0],
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=1),
    "reshape": lambda x: jnp.reshape(x, -1),
    "reverse": lambda x: jnp.flip(x, (0, -1)),
    "roll": lambda x: jnp.roll(x, 2, 1),
    "row": lambda x: x[-1],
    "scan": scan,
    "scan by rows": chunks,
    "scan by rows, the last shorter": chunks,
    "scatter_add": lambda i, x: jnp.zeros((x.shape[0], 5, x.shape[2])).at[:, integers(i)].add(x),
    "slice": lambda x: x[1:, 1:3],
    "split": lambda x: jnp.split(x, 2)[1],
    "squeeze": jnp.squeeze,
    "stack": lambda *x: jnp.stack(x, -1),
    "tile": lambda x: jnp.tile(x, (2, 3)),
    "transpose": lambda x: jnp.transpose(x, (2, 0, 1)),
    "transpose of matrices": lambda x: jnp.swapaxes(x, -1, -2),
    "unstack": lambda x: x[..., 1],
    "while_loop": repeated,
}
