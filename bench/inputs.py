"""python inputs.py WORKLOAD FILE.npz: the data and weights that the peers draw for a workload, in the order in which
gradus_bench has its variables (--inputs FILE.npz), so that both compute the same. Needs NumPy: run by a peer's Python."""
import sys

import numpy as np

from peer_protocol import GENERATE, cls_data, generate_weights, gpt_data, gpt_weights, mlp_weights

PERCEPTRONS = {  # the shape of x, and the layers; one class: no labels
    "mlp_tiny": ((64, 784), (784, 128, 10)),
    "mlp_tiny_b16": ((16, 784), (784, 128, 10)),
    "mlp_tiny_b256": ((256, 784), (784, 128, 10)),
    "mlp_tiny_b1024": ((1024, 784), (784, 128, 10)),
    "mlp_big": ((256, 784), (784, 2048, 2048, 10)),
    "mlp_big_bf16": ((256, 784), (784, 2048, 2048, 10)),
    "accumulate": ((1024, 784), (784, 2048, 2048, 10)),
    "jacobian": ((8192, 64), (64, 256, 256, 10)),
    "pegn": ((1024, 784), (784, 128, 10)),
}
GPT_LAYERS = {"gpt": 4, "gpt_bf16": 4, "gpt_l1": 1, "gpt_l2": 2, "gpt_l8": 8}
GENERATED = ("generate", "generate_b8", "generate_growing")
NAMES = (*PERCEPTRONS, *GPT_LAYERS, *GENERATED)


def gpt_variables(weights, layers):
    """The peers' arrays with one projection for query, key and value each, both norms of a block before its attention."""
    given = iter(weights)
    take = lambda count: [next(given) for _ in range(count)]
    variables = take(2)
    for _ in range(layers):
        norm, (qkv, bias), output, second_norm, mlp = take(2), take(2), take(2), take(2), take(4)
        thirds = zip(np.split(qkv, 3, axis=1), np.split(bias, 3))
        variables += norm + second_norm + [part for third in thirds for part in third] + output + mlp
    return variables + take(3)


def arrays(workload):
    if workload in GPT_LAYERS:
        tokens, following = gpt_data()
        data = {"text": np.concatenate([tokens, following[:, -1:]], axis=1)}
        weights = gpt_variables(gpt_weights(GPT_LAYERS[workload]), GPT_LAYERS[workload])
    elif workload in GENERATED:
        data, weights = {}, gpt_variables(generate_weights(), GENERATE["layers"])
    else:
        shape, layers = PERCEPTRONS[workload]
        x, y = cls_data(shape, 10)
        data, weights = {"x": x, "y": y}, mlp_weights(layers)
    return data | {f"w{i}": weight for i, weight in enumerate(weights)}


if __name__ == "__main__":
    np.savez(sys.argv[2], **arrays(sys.argv[1]))
