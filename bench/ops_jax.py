"""JAX in the sweep over ops: op by op, and inside jit; each result is waited for. Started by ops.py."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

import ops_peer


def pairs(x):
    """Complex numbers as a last dimension of 2."""
    return jnp.stack([x.real, x.imag], -1)


def complex_of(x):
    return lax.complex(x[..., 0], x[..., 1])


def of_sequence(step, states):
    """The first state behind the last place of [batch, time, inputs]: projections for all places, then one scan."""
    def run(x, kernel, recurrent, bias):
        start = tuple(jnp.zeros((x.shape[0], recurrent.shape[0])) for _ in range(states))
        gates = jnp.moveaxis(x @ kernel + bias, 1, 0)
        return lax.scan(lambda state, gate: (step(state, gate, recurrent), None), start, gates)[0][0]
    return run


def lstm_step(state, gate, recurrent):
    i, f, c, o = jnp.split(gate + state[0] @ recurrent, 4, -1)
    cell = nn.sigmoid(f) * state[1] + nn.sigmoid(i) * jnp.tanh(c)
    return nn.sigmoid(o) * jnp.tanh(cell), cell


def gru_step(state, gate, recurrent):
    inner = state[0] @ recurrent
    (z, r, h), (inner_z, inner_r, inner_h) = jnp.split(gate, 3, -1), jnp.split(inner, 3, -1)
    z = nn.sigmoid(z + inner_z)
    return z * state[0] + (1 - z) * jnp.tanh(h + nn.sigmoid(r + inner_r) * inner_h),


class Jax:
    name, index = "jax", np.int32
    scope = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "pairs": pairs, "complex_of": complex_of,
             "lstm_of": of_sequence(lstm_step, 2), "gru_of": of_sequence(gru_step, 1),
             "simple_rnn_of": of_sequence(lambda state, gate, recurrent: (jnp.tanh(gate + state[0] @ recurrent),), 1)}

    @staticmethod
    def shape_of(call, arrays):
        return jax.eval_shape(call, *arrays)[0].shape

    @staticmethod
    def value(call, arrays, mode):
        inputs = [jnp.asarray(array) for array in arrays]
        run = jax.jit(call) if mode == "function" else call
        return lambda: jax.block_until_ready(run(*inputs))

    @staticmethod
    def gradient(call, arrays, sources, cotangent, mode):
        inputs, weights = [jnp.asarray(array) for array in arrays], jnp.asarray(cotangent)

        def run(weights, *inputs):
            first = lambda *by: call(*by, *inputs[sources:])[0]
            return jax.vjp(first, *inputs[:sources])[1](weights)
        run = jax.jit(run) if mode == "function" else run
        return lambda: jax.block_until_ready(run(weights, *inputs))

    @staticmethod
    def array(result):
        return np.asarray(result)


if __name__ == "__main__":
    ops_peer.serve(Jax())
