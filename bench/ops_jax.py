"""JAX in the sweep over ops: op by op, and inside jit; each result is waited for. Started by ops.py."""
import jax
import jax.numpy as jnp
import numpy as np

import ops_peer


class Jax:
    name, index = "jax", np.int32
    scope = {"jax": jax, "jnp": jnp, "lax": jax.lax, "nn": jax.nn}

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
