"""Trainings of 20 steps that are run by TensorFlow and by gradus.tensorflow, from the same first weights on the same data: each
gives the arrays that the two must agree in. `tf` is one of both; `nn` has layers, losses and optimizers by Keras's names.

    programs.py LIBRARY OUT.npz        LIBRARY is tensorflow or gradus
"""
import sys
import types

import numpy as np

STEPS = 20
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def examples(n=320, features=8, classes=4):
    """Features and whole numbers of classes that follow from them."""
    x = numbers(n, features)
    return x, np.argmax(x @ numbers(features, classes, seed=1), axis=1).astype(np.int64)


def batches(*arrays, size=16):
    """STEPS batches, from the begin again where the arrays end."""
    n = len(arrays[0]) // size
    return [tuple(a[k % n * size:(k % n + 1) * size] for a in arrays) for k in range(STEPS)]


def with_first_weights(variables):
    for k, variable in enumerate(variables):
        shape = tuple(variable.shape)
        variable.assign(numbers(*shape, seed=10 + k) * np.float32((shape[0] if len(shape) > 1 else 10) ** -0.5))
    return variables


def network(nn, features=8, *sizes, **last):
    """A dense network that is built and has the first weights."""
    model = nn.Sequential([*[nn.Dense(size, "relu") for size in sizes[:-1]], nn.Dense(sizes[-1], **last)])
    model(np.zeros((1, features), np.float32))
    with_first_weights(model.trainable_variables)
    return model


def arrays(variables, losses=(), **others):
    found = {f"weight {i}": np.asarray(v) for i, v in enumerate(variables)}
    return {**found, "losses": np.array([float(loss) for loss in losses], np.float32),
            **{name: np.asarray(array) for name, array in others.items()}}


@program
def a_loop_op_by_op(tf, nn):
    x, y = examples()
    w = with_first_weights([tf.Variable(np.zeros(shape, np.float32)) for shape in ((8, 16), (16,), (16, 4), (4,))])
    losses = []
    for a, b in batches(x, y):
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(a, w[0]) + w[1]), w[2]) + w[3]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=logits))
        for v, gradient in zip(w, tape.gradient(loss, w)):
            v.assign_sub(0.1 * gradient)
        losses.append(loss)
    return arrays(w, losses)


def by(name, optimizer):
    """A compiled step with each optimizer is a program of its own."""
    def compiled_step(tf, nn):
        x, y = examples()
        model, o = network(nn, 8, 16, 4), optimizer(nn)
        loss_function = nn.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function
        def step(a, b):
            with tf.GradientTape() as tape:
                loss = loss_function(b, model(a, training=True))
            o.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss
        return arrays(model.trainable_variables, [step(tf.constant(a), tf.constant(b)) for a, b in batches(x, y)])
    compiled_step.__name__ = f"a_compiled_step_by_{name}"
    return program(compiled_step)


by("sgd", lambda nn: nn.SGD(0.1, momentum=0.9))
by("nesterov", lambda nn: nn.SGD(0.1, momentum=0.9, nesterov=True))
by("adam", lambda nn: nn.Adam(0.01))
by("adamw", lambda nn: nn.AdamW(0.01, weight_decay=0.01))
by("rmsprop", lambda nn: nn.RMSprop(0.01))
by("adagrad", lambda nn: nn.Adagrad(0.05))
by("adamax", lambda nn: nn.Adamax(0.01))


@program
def gradients_clipped_together(tf, nn):
    x, y = examples()
    model, optimizer = network(nn, 8, 16, 1), nn.SGD(0.05)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.squeeze(model(a), 1) - tf.cast(b, tf.float32) * 100.0))
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return norm
    return arrays(model.trainable_variables, [step(a, b) for a, b in batches(x, y)])


@program
def gradients_clipped_one_by_one(tf, nn):
    x, y = examples()

    @tf.function
    def step(a, b, model):
        with tf.GradientTape() as tape:
            loss = nn.MeanSquaredError()(b, model(a))
        clipped = [tf.clip_by_norm(g, 1.0) for g in tape.gradient(loss, model.trainable_variables)]
        optimizer.apply_gradients(zip(clipped, model.trainable_variables))
        return loss
    model, optimizer = network(nn, 8, 16, 1), nn.SGD(0.1)
    return arrays(model.trainable_variables,
                  [step(tf.constant(a), tf.constant(b[:, None].astype(np.float32)), model) for a, b in batches(x, y)])


@program
def accumulation_over_slices(tf, nn):
    x, y = examples(64)
    targets, model, optimizer = tf.one_hot(y, 4), network(nn, 8, 16, 4, activation="softmax"), nn.Adam(0.01)
    for _ in range(STEPS):
        total = None
        for i in range(4):
            with tf.GradientTape() as tape:
                found = model(x[i * 16:(i + 1) * 16])
                loss = tf.reduce_mean(-tf.reduce_sum(targets[i * 16:(i + 1) * 16] * tf.math.log(found), axis=-1)) / 4.0
            gradients = tape.gradient(loss, model.trainable_variables)
            total = gradients if total is None else [tf.add(a, b) for a, b in zip(total, gradients)]
        optimizer.apply_gradients(zip(total, model.trainable_variables))
    return arrays(model.trainable_variables)


@program
def accumulation_in_a_list_over_a_data_set(tf, nn):
    x, y = examples()
    model, optimizer = network(nn, 8, 16, 4), nn.RMSprop(0.01)
    sums = [tf.zeros_like(v) for v in model.trainable_variables]
    for step, (a, b) in enumerate(tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat().take(2 * STEPS)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=model(a)))
        for i, gradient in enumerate(tape.gradient(loss, model.trainable_variables)):
            sums[i] += gradient / 2.0
        if (step + 1) % 2 == 0:
            optimizer.apply_gradients(zip(sums, model.trainable_variables))
            sums = [tf.zeros_like(v) for v in model.trainable_variables]
    return arrays(model.trainable_variables)


@program
def a_pipeline_that_normalizes(tf, nn):
    x, y = examples()
    model, optimizer = network(nn, 8, 16, 4), nn.Adam(0.01)

    def normalized(a, b):
        return (a - tf.reduce_mean(a)) / (tf.math.reduce_std(a) + 1e-3), tf.one_hot(b, 4)
    data = tf.data.Dataset.from_tensor_slices((x, y)).map(normalized).filter(lambda a, b: tf.reduce_max(a) < 2.4)
    losses = []
    for a, b in data.batch(12, drop_remainder=True).repeat().prefetch(2).take(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=b, logits=model(a)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        losses.append(loss)
    return arrays(model.trainable_variables, losses)


@program
def fit_with_a_smaller_last_batch(tf, nn):
    x, y = examples(310)
    model = network(nn, 8, 16, 4)
    model.compile(nn.Adam(0.01), nn.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(32), epochs=2, verbose=0)
    return arrays(model.trainable_variables, scores=model(x))


@program
def a_model_with_normalization(tf, nn):
    class Net(nn.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.norm, self.scores = nn.Dense(16, "tanh"), nn.BatchNormalization(), nn.Dense(4)

        def call(self, x, training=None):
            return self.scores(self.norm(self.hidden(x), training=training))
    x, y = examples()
    model, optimizer = Net(), nn.SGD(0.1)
    model(x[:1])
    with_first_weights(model.trainable_variables)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=model(a, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    losses = [step(tf.constant(a), tf.constant(b)) for a, b in batches(x, y)]
    return arrays(model.trainable_variables, losses, scores=model(x[:32], training=False))


@program
def convolutions(tf, nn):
    x, y = numbers(64, 8, 8, 3), np.arange(64) % 4
    kernel, bias, w = with_first_weights([tf.Variable(np.zeros(s, np.float32)) for s in ((3, 3, 3, 8), (8,), (128, 4))])
    optimizer = nn.Adam(0.005)

    @tf.function(jit_compile=True)
    def step(a, b):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.nn.conv2d(a, kernel, strides=1, padding="SAME") + bias)
            h = tf.nn.max_pool2d(h, ksize=2, strides=2, padding="VALID")
            logits = tf.reshape(h, (-1, 128)) @ w
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, [kernel, bias, w]), [kernel, bias, w]))
        return loss
    return arrays([kernel, bias, w], [step(tf.constant(a), tf.constant(b)) for a, b in batches(x, y)])


@program
def rows_of_a_table(tf, nn):
    ids = np.random.default_rng(2).integers(0, 50, (320, 5))
    table, w = with_first_weights([tf.Variable(np.zeros(s, np.float32)) for s in ((50, 8), (8, 1))])
    optimizer = nn.SGD(0.1)
    losses = []
    for a, t in batches(ids, numbers(320, 1, seed=5)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.reduce_mean(tf.nn.embedding_lookup(table, a), axis=1) @ w - t) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table, w]), [table, w]))
        losses.append(loss)
    return arrays([table, w], losses)


@program
def a_penalty_on_gradients(tf, nn):
    x, y = examples()
    model, optimizer = network(nn, 8, 16, 1, activation="tanh"), nn.Adam(0.01)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(a)
                score = tf.reduce_sum(model(a))
            slopes = inner.gradient(score, a)
            penalty = tf.reduce_mean((tf.norm(slopes, axis=1) - 1.0) ** 2)
            loss = penalty + tf.reduce_mean((tf.squeeze(model(a), 1) - tf.cast(b, tf.float32)) ** 2)
        optimizer.apply_gradients(zip(outer.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    return arrays(model.trainable_variables, [step(tf.constant(a), tf.constant(b)) for a, b in batches(x, y)])


@program
def two_networks_of_one_tape(tf, nn):
    x, _ = examples()
    one, two = network(nn, 8, 16, 8), network(nn, 8, 16, 1)
    first, second = nn.Adam(0.01), nn.RMSprop(0.01)
    for a, in batches(x):
        with tf.GradientTape(persistent=True) as tape:
            made = two(one(a))
            to_fool = tf.reduce_mean(tf.nn.softplus(-made))
            to_tell = tf.reduce_mean(tf.nn.softplus(made)) + tf.reduce_mean(tf.nn.softplus(-two(a)))
        of_one = tape.gradient(to_fool, one.trainable_variables)
        of_two = tape.gradient(to_tell, two.trainable_variables)
        first.apply_gradients(zip(of_one, one.trainable_variables))
        second.apply_gradients(zip(of_two, two.trainable_variables))
    return arrays(one.trainable_variables + two.trainable_variables)


@program
def branches_and_loops_on_tensors(tf, nn):
    w = with_first_weights([tf.Variable(np.zeros((8, 8), np.float32))])[0]

    @tf.function
    def step(a):
        with tf.GradientTape() as tape:
            h = tf.tanh(a @ w)
            if tf.reduce_mean(h) > 0:
                h = h * 2.0
            else:
                h = h - 1.0
            _, h = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(h @ w)), (tf.constant(0), h))
            loss = tf.reduce_mean(h ** 2)
        w.assign_sub(0.05 * tape.gradient(loss, w))
        return loss
    losses = [step(tf.constant(a)) for a, in batches(numbers(320, 8, seed=7))]
    return arrays([w], losses)


@program
def a_gradient_of_ones_own(tf, nn):
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x * 4.0) / 4.0, lambda dy: dy * 0.5
    w = with_first_weights([tf.Variable(np.zeros((8, 4), np.float32))])[0]
    losses = []
    for a, b in batches(*examples()):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rounded(a @ w) - tf.one_hot(b, 4)) ** 2)
        w.assign_sub(0.3 * tape.gradient(loss, w))
        losses.append(loss)
    return arrays([w], losses)


@program
def two_replicas(tf, nn):
    x, y = examples()
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with strategy.scope():
        model, optimizer = network(nn, 8, 16, 4), nn.SGD(0.1)

    def of_replica(a, b):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=model(a))
            loss = tf.nn.compute_average_loss(each, global_batch_size=16)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(16))
    losses = [strategy.reduce("SUM", strategy.run(of_replica, args=(a, b)), axis=None) for a, b in data]
    return arrays(model.trainable_variables, losses)


def libraries(name):
    if name == "gradus":
        import gradus.tensorflow as tf
        from gradus import nn
        return tf, nn
    import tensorflow as tf
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                               [tf.config.LogicalDeviceConfiguration()] * 2)
    names = {}
    for module in (tf.keras.layers, tf.keras.losses, tf.keras.optimizers, tf.keras):
        names |= {name: getattr(module, name) for name in dir(module) if name[0].isupper()}
    return tf, types.SimpleNamespace(**names)


def run(name):
    tf, nn = libraries(name)
    return {f"{p.__name__}: {name}": array for p in PROGRAMS for name, array in p(tf, nn).items()}


if __name__ == "__main__":
    np.savez(sys.argv[2], **run(sys.argv[1]))
