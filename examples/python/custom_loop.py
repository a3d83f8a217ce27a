"""A training loop of one's own in TensorFlow's names: accumulated gradients, clipping, a branch on a tensor, a checkpoint.

    python custom_loop.py
"""
import os
import sys
import tempfile

import gradus.tensorflow as tf
from gradus import nn


class Net(nn.Model):
    """Two layers and a skip connection."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(32, "relu")
        self.mixed = nn.Dense(32, "relu")
        self.last = nn.Dense(1)

    def call(self, x):
        h = self.hidden(x)
        return self.last(h + self.mixed(h))


def main():
    tf.random.set_seed(3)
    x = tf.random.normal([512, 6])
    y = tf.reduce_sum(x[:, :3] * x[:, 3:], axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(512, seed=1).batch(64)
    model, optimizer, loss_function = Net(), nn.Adam(0.01), nn.MeanSquaredError()
    model(x[:1])

    @tf.function
    def train_step(x, y):
        total = None
        for part in range(2):  # the gradients of halves add up to those of the whole
            rows = slice(part * 32, (part + 1) * 32)
            with tf.GradientTape() as tape:
                loss = loss_function(y[rows], model(x[rows], training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
        gradients, norm = tf.clip_by_global_norm([g / 2 for g in total], 5.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        if norm > 5.0:  # Python's if, on a value that is known when the step runs
            return loss, tf.constant(1)
        return loss, tf.constant(0)

    with tempfile.TemporaryDirectory() as folder:
        epoch = tf.Variable(0, dtype=tf.int64)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch), folder,
                                             max_to_keep=2)
        while epoch < 40:
            clipped = 0
            for images, labels in data:
                loss, was_clipped = train_step(images, labels)
                clipped += int(was_clipped)
            epoch.assign_add(1)
            if int(epoch) % 10 == 0:
                print(f"epoch {int(epoch)}: loss {float(loss):.4f}, {clipped} steps clipped, saved as "
                      f"{os.path.basename(manager.save())}")
    if float(loss) > 0.3:
        sys.exit("the network should learn the products")


if __name__ == "__main__":
    main()
