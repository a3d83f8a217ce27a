"""One training on two devices: each batch is divided, and the result is that of one device.

    python two_replicas.py
"""
import sys

import gradus.tensorflow as tf
import numpy as np
from gradus import nn


def train(strategy, epochs=5):
    """The weights after a training on the devices of a strategy, and the loss of the last epoch."""
    tf.random.set_seed(7)
    x = tf.random.normal([300, 8])
    y = tf.argmax(x, axis=1)
    with strategy.scope():
        model = nn.Sequential([nn.Dense(32, "relu"), nn.Dense(8)])
        optimizer = nn.Adam(0.01)
        loss_function = nn.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function  # traced once; another function is traced at each call
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_function(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(32))
    for _ in range(epochs):
        losses = [strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(step, args=batch), axis=None) for batch in batches]
    return [v.numpy() for v in model.variables], float(np.mean([float(loss) for loss in losses]))


def main():
    one, loss_of_one = train(tf.distribute.get_strategy())
    two, loss_of_two = train(tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]))
    difference = max(np.abs(a - b).max() for a, b in zip(one, two))
    print(f"loss on one device {loss_of_one:.6f}, on two {loss_of_two:.6f}; weights differ by at most {difference:.1e}")
    if difference > 1e-3:
        sys.exit("two replicas should train as one")


if __name__ == "__main__":
    main()
