"""The problems of make_reference.py: their numbers, and their losses by Keras and by PyTorch.

mlp, loss_scale: tanh(x k0 + b0) k1 + b1, mean squared error. cnn: two convolutions, each with batch normalization and
relu, and a dense layer, cross entropy. transformer: a block of causal attention and a feed-forward part, each added
to its input and layer-normalized, and a dense layer, mean squared error. Weights are w00, w01, ... in order.
"""
import numpy as np

EPSILON = 1e-3
SHAPES = {
    "mlp": [(4, 8), (8,), (8, 3), (3,)],
    # kernel, gamma, beta; kernel of stride 2, gamma, beta; kernel, bias
    "cnn": [(3, 3, 2, 3), (3,), (3,), (3, 3, 3, 4), (4,), (4,), (36, 3), (3,)],
    # query, key, value, output, each kernel and bias; gamma, beta; two dense layers; gamma, beta; the last layer
    "transformer": [(6, 2, 3), (2, 3), (6, 2, 3), (2, 3), (6, 2, 3), (2, 3), (2, 3, 6), (6,), (6,), (6,),
                    (6, 8), (8,), (8, 6), (6,), (6,), (6,), (6, 3), (3,)],
}
SHAPES["loss_scale"] = SHAPES["mlp"]
SCALES = {"cnn": (1, 4), "transformer": (8, 14)}  # gammas: about 1


def numbers(kind):
    draw = np.random.default_rng(7)
    if kind == "cnn":
        all_numbers = {"x": draw.normal(size=(12, 6, 6, 2)), "y": draw.integers(0, 3, size=12)}
    elif kind == "transformer":
        all_numbers = {"x": draw.normal(size=(12, 5, 6)), "y": draw.normal(size=(12, 5, 3))}
    else:
        all_numbers = {"x": draw.normal(size=(12, 4)), "y": draw.normal(size=(12, 3))}
    for i, shape in enumerate(SHAPES[kind]):
        small = 1 / np.sqrt(np.prod(shape[:-1])) if len(shape) > 1 else 0.1
        all_numbers[f"w{i:02}"] = draw.normal(size=shape) * small + (1 if i in SCALES.get(kind, ()) else 0)
    return all_numbers


class KerasProblem:
    def __init__(self, trainable, moving, initial, loss):
        self.trainable, self.moving, self.initial, self.loss = trainable, moving, initial, loss
        # Building them has moved them already.
        self.at_start = [np.zeros(v.shape) if v.name == "moving_mean" else np.ones(v.shape) for v in moving]

    def reset(self):
        for variable, value in zip(self.trainable + self.moving, self.initial + self.at_start):
            variable.assign(value)


def of_keras(kind, numbers):
    import keras
    import tensorflow as tf
    layers = keras.layers
    initial = [np.asarray(v) for name, v in sorted(numbers.items()) if name.startswith("w")]
    x, y = tf.constant(numbers["x"]), tf.constant(numbers["y"])

    def problem(stack, loss):
        loss(x, y)  # builds
        trainable = [v for layer in stack for v in layer.trainable_variables]
        moving = [v for layer in stack for v in layer.non_trainable_variables]
        assert [tuple(v.shape) for v in trainable] == SHAPES[kind], [(v.path, v.shape) for v in trainable]
        return KerasProblem(trainable, moving, initial, loss)

    if kind == "cnn":
        same = {"padding": "same", "use_bias": False}
        first, first_norm = layers.Conv2D(3, 3, **same), layers.BatchNormalization()
        second, second_norm = layers.Conv2D(4, 3, strides=2, **same), layers.BatchNormalization()
        flat, last = layers.Flatten(), layers.Dense(3)

        def loss(x, y):
            h = tf.nn.relu(first_norm(first(x), training=True))
            h = tf.nn.relu(second_norm(second(h), training=True))
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, last(flat(h))))

        return problem([first, first_norm, second, second_norm, last], loss)
    if kind == "transformer":
        attention = layers.MultiHeadAttention(2, 3)
        norms = [layers.LayerNormalization(epsilon=EPSILON) for _ in range(2)]
        wide, narrow, last = layers.Dense(8), layers.Dense(6), layers.Dense(3)

        def loss(x, y):
            h = norms[0](x + attention(x, x, use_causal_mask=True))
            h = norms[1](h + narrow(keras.activations.gelu(wide(h), approximate=False)))
            return tf.reduce_mean(tf.square(last(h) - y))

        return problem([attention, norms[0], wide, narrow, norms[1], last], loss)

    weights = [keras.Variable(v, name=name, dtype="float64") for name, v in zip(("k0", "b0", "k1", "b1"), initial)]

    def loss(x, y):
        k0, b0, k1, b1 = [w.value for w in weights]
        return tf.reduce_mean(tf.square(tf.tanh(x @ k0 + b0) @ k1 + b1 - y))

    return KerasProblem(weights, [], initial, loss)


def of_torch(kind, numbers):
    import torch
    f = torch.nn.functional
    w = [torch.tensor(v, requires_grad=True) for name, v in sorted(numbers.items()) if name.startswith("w")]
    x, y = torch.tensor(numbers["x"]), torch.tensor(numbers["y"])

    def normalized(h, gamma, beta):
        scaled = f.batch_norm(h, None, None, gamma, beta, training=True, eps=EPSILON)
        return torch.relu(scaled)

    def cnn():
        h = x.permute(0, 3, 1, 2)
        h = normalized(f.conv2d(h, w[0].permute(3, 2, 0, 1), padding=1), w[1], w[2])
        # TensorFlow's `same` with stride 2 on an even size: nothing before, one after.
        h = normalized(f.conv2d(f.pad(h, (0, 1, 0, 1)), w[3].permute(3, 2, 0, 1), stride=2), w[4], w[5])
        return f.cross_entropy(h.permute(0, 2, 3, 1).reshape(len(x), -1) @ w[6] + w[7], y)

    def transformer():
        heads = [torch.einsum("bti,ihk->bhtk", x, w[i]) + w[i + 1][:, None] for i in (0, 2, 4)]
        seen = f.scaled_dot_product_attention(*heads, is_causal=True)
        h = x + torch.einsum("bhtk,hko->bto", seen, w[6]) + w[7]
        h = f.layer_norm(h, (6,), w[8], w[9], EPSILON)
        h = f.layer_norm(h + f.gelu(h @ w[10] + w[11]) @ w[12] + w[13], (6,), w[14], w[15], EPSILON)
        return torch.mean(torch.square(h @ w[16] + w[17] - y))

    def mlp():
        return torch.mean(torch.square(torch.tanh(x @ w[0] + w[1]) @ w[2] + w[3] - y))

    return w, {"cnn": cnn, "transformer": transformer}.get(kind, mlp)
