"""Makes the files of this directory with Keras 3: models, and for each an archive of an input and what Keras's model
gives for it. make_files.py [DIRECTORY]"""
import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
from keras import layers

directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(1)


def place(name):
    return os.path.join(directory, name)


def disturb(model):
    """Weights unlike the first ones, also of moving statistics; variances stay positive."""
    for variable in model.weights:
        if "int" in variable.dtype:
            continue
        value = random.uniform(-0.5, 0.5, variable.shape)
        if "variance" in variable.path:
            value = value + 1
        if "/gamma" in variable.path or "/scale" in variable.path:
            value = value + 1
        variable.assign(value.astype("float32"))


def store(name, model, x, whole=True):
    disturb(model)
    if whole:
        model.save(place(name + ".keras"))
        model = keras.models.load_model(place(name + ".keras"))  # statistics of Normalization count once they are read
    else:
        model.save_weights(place(name + ".weights.h5"))
    y = np.array(keras.ops.cast(model(x, training=False), "float32"))
    assert np.isfinite(y).all() and np.abs(y).max() > 1e-3, name
    np.savez(place(name + ".npz"), x=x, y=y)


def images():
    model = keras.Sequential([
        keras.Input((9, 8, 3)),
        layers.Rescaling(0.5, 0.1),
        layers.Conv2D(4, (3, 2), strides=2, padding="same", activation="relu", name="first"),
        layers.BatchNormalization(momentum=0.9),
        layers.ZeroPadding2D(((1, 0), (0, 2))),
        layers.DepthwiseConv2D(2, depth_multiplier=2, activation="tanh"),
        layers.SeparableConv2D(3, 2, padding="same", use_bias=False),
        layers.UpSampling2D((2, 1), interpolation="bilinear"),
        layers.Cropping2D(((1, 0), (0, 1))),
        layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
        layers.MaxPooling2D(),
        layers.AveragePooling2D(2, strides=1, padding="same"),
        layers.GroupNormalization(3),
        layers.Dropout(0.5),
        layers.GlobalAveragePooling2D(),
        layers.Dense(5, activation="softmax"),
    ])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(random.normal(size=(4, 9, 8, 3)), np.zeros((4, 5)), verbose=0)
    model.layers[1].trainable = False
    return model, random.normal(size=(2, 9, 8, 3)).astype("float32")


def sequences():
    model = keras.Sequential([
        keras.Input((6,), dtype="int32"),
        layers.Embedding(11, 4),
        layers.SpatialDropout1D(0.1),
        layers.Bidirectional(layers.LSTM(3, return_sequences=True, dropout=0.2), merge_mode="ave"),
        layers.LayerNormalization(),
        layers.TimeDistributed(layers.Dense(4, activation="gelu")),
        layers.GRU(3, return_sequences=True, reset_after=False),
        layers.GRU(4, return_sequences=True, go_backwards=True),
        layers.SimpleRNN(3, activation="relu"),
        layers.Dense(2),
    ])
    return model, random.integers(0, 11, (3, 6)).astype("int32")


def shapes():
    block = keras.Sequential([keras.Input((6, 4)), layers.Conv1D(4, 3, padding="same", dilation_rate=2, groups=2),
                              layers.LeakyReLU(0.1), layers.Dense(4)], name="block")
    model = keras.Sequential([
        keras.Input((12,)),
        layers.Normalization(),
        layers.Reshape((6, 2)),
        layers.Permute((2, 1)),
        layers.Permute((2, 1)),
        layers.Conv1DTranspose(4, 3, padding="same"),
        block,
        layers.PReLU(shared_axes=[1]),
        layers.RMSNormalization(),
        layers.UnitNormalization(),
        layers.Activation("mish"),
        layers.AveragePooling1D(2),
        layers.UpSampling1D(2),
        layers.ZeroPadding1D(1),
        layers.ELU(0.7),
        layers.ReLU(max_value=4, negative_slope=0.1, threshold=0.2),
        layers.GaussianNoise(0.3),
        layers.AlphaDropout(0.1),
        layers.Flatten(),
        layers.RepeatVector(2),
        layers.Softmax(),
        layers.Reshape((2, 4, 4, 2)),
        layers.Conv3D(2, 2, padding="same"),
        layers.MaxPooling3D((1, 2, 2)),
        layers.Identity(),
        layers.GlobalMaxPooling3D(keepdims=True),
        layers.Flatten(),
    ])
    return model, random.normal(size=(2, 12)).astype("float32")


def masked():
    model = keras.Sequential([
        keras.Input((6,), dtype="int32"),
        layers.Embedding(11, 4, mask_zero=True, embeddings_regularizer=keras.regularizers.L1(0.03)),
        layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.Dropout(0.1),
        layers.GRU(4, return_sequences=True, kernel_regularizer="l2"),
        layers.LayerNormalization(),
        layers.TimeDistributed(layers.Dense(3)),
        layers.SimpleRNN(3),
        layers.Dense(2, kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02)),
    ])
    x = random.integers(1, 11, (3, 6)).astype("int32")
    x[0, 4:], x[1, 1:] = 0, 0
    return model, x


def mixed():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5, activation="relu", dtype="mixed_float16"),
                              layers.Dense(3, dtype="float32")])
    return model, random.normal(size=(3, 6)).astype("float32")


def cells():
    model = keras.Sequential([
        keras.Input((6, 5)),
        layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d", activation="tanh", kernel_regularizer="l2"),
        layers.EinsumDense("...x,xy->...y", 4),
        layers.RNN([layers.GRUCell(4, reset_after=False), layers.LSTMCell(3)], return_sequences=True),
        layers.ActivityRegularization(l1=0.01, l2=0.02),
        layers.RNN(layers.SimpleRNNCell(6, activation="relu"), return_sequences=True, go_backwards=True),
        layers.RNN(layers.GRUCell(8, kernel_regularizer="l2"), return_sequences=True),
        layers.Reshape((6, 8, 1)),
        layers.ConvLSTM1D(4, 3, padding="same", return_sequences=True, recurrent_regularizer="l1"),
        layers.Reshape((6, 4, 8, 1)),
        layers.ConvLSTM2D(2, (2, 3), strides=(1, 2), go_backwards=True, activation="sigmoid", use_bias=False),
        layers.Flatten(),
        layers.Dense(3),
    ])
    return model, random.normal(size=(2, 6, 5)).astype("float32")


def augmented():
    model = keras.Sequential([
        keras.Input((9, 8, 3)),
        layers.RandomFlip("horizontal"),
        layers.RandomTranslation(0.1, (-0.2, 0.3), fill_mode="nearest"),
        layers.RandomRotation(0.1),
        layers.RandomZoom((-0.2, 0.1), fill_mode="constant"),
        layers.RandomZoom(0.1, 0.2),
        layers.RandomBrightness(0.2, value_range=(0, 1)),
        layers.RandomContrast((0.2, 0.4)),
        layers.Conv2D(2, 2),
        layers.Flatten(),
        layers.Dense(3),
    ])
    return model, random.normal(size=(2, 9, 8, 3)).astype("float32")


def chain():
    """A Functional whose layers stand one after the other."""
    given = keras.Input((6, 5))
    h = layers.GRU(4, return_sequences=True)(given)
    h = keras.Sequential([layers.Dense(4, activation="relu"), layers.LayerNormalization()], name="block")(h)
    h = layers.Dropout(0.2)(layers.Flatten()(h))
    return keras.Model(given, layers.Dense(2)(h)), random.normal(size=(2, 6, 5)).astype("float32")


def branches():
    """A Functional that is no chain."""
    given = keras.Input((3,))
    h = layers.Dense(4)(given)
    return keras.Model(given, layers.Concatenate(name="joined")([h, layers.Dense(2)(h)])), [
        random.normal(size=(2, 3)).astype("float32")]


def residual():
    """Images: residual blocks, a gate of channels, a layer that is called twice, a frozen one."""
    given = keras.Input((8, 8, 3))
    h = layers.Conv2D(4, 3, padding="same", use_bias=False)(given)
    h = layers.ReLU()(layers.BatchNormalization(trainable=False)(h))
    again = layers.Conv2D(4, 3, padding="same", name="twice")
    for _ in range(2):
        h = layers.add([h, layers.BatchNormalization()(again(h))])
    gate = layers.GlobalAveragePooling2D(keepdims=True)(h)
    h = layers.multiply([h, layers.Dense(4, activation="sigmoid")(layers.Dense(2, activation="relu")(gate))])
    parts = [layers.SeparableConv2D(3, 3, padding="same")(h), layers.MaxPooling2D(3, 1, padding="same")(h), h]
    h = layers.AveragePooling2D(2)(layers.Concatenate()(parts))
    return keras.Model(given, layers.Dense(5, activation="softmax")(layers.Flatten()(h))), [
        random.normal(size=(3, 8, 8, 3)).astype("float32")]


def translation():
    """Words with a mask: an encoder whose state a decoder takes, attentions, models within, several outputs by name."""
    words = keras.Input((6,), dtype="int32", name="words")
    other = keras.Input((5,), dtype="int32", name="other")
    number = keras.Input((1,), name="number")
    embed = layers.Embedding(11, 8, mask_zero=True)
    encoded, h, c = layers.LSTM(8, return_sequences=True, return_state=True)(embed(words))
    decoded = layers.LSTM(8, return_sequences=True)(embed(other), initial_state=[h, c])
    seen = layers.Attention(use_scale=True)([decoded, encoded])
    heads = layers.MultiHeadAttention(2, 4)
    h = layers.LayerNormalization()(decoded + seen + heads(decoded, encoded))
    h = layers.Add()([h, heads(h, h, use_causal_mask=True)])
    a, b = keras.Input((5, 8)), keras.Input((1,))
    inner = keras.Model([a, b], [layers.Dense(4, activation="gelu")(a), layers.Dense(3)(b)], name="inner")
    block = keras.Sequential([keras.Input((5, 4)), layers.Dense(6, activation="tanh"), layers.Dense(4)], name="block")
    first, second = inner([h, number])
    h = layers.GRU(3)(block(first))
    outputs = {"words": layers.TimeDistributed(layers.Dense(11))(first), "joint": layers.Concatenate()([h, second]),
               "angle": layers.Dot(axes=1, normalize=True)([h, second])}
    x = [random.integers(1, 11, (3, 6)).astype("int32"), random.integers(1, 11, (3, 5)).astype("int32"),
         random.normal(size=(3, 1)).astype("float32")]
    x[0][0, 4:] = 0  # a masked query gets the mean of all values in Keras, and 0 here
    return keras.Model([words, other, number], outputs), x


def formulas():
    """Ops of keras.ops between the layers."""
    ops = keras.ops
    x, i = keras.Input((6, 4), name="x"), keras.Input((6,), dtype="int32", name="i")
    h = layers.Dense(4)(x)
    results = [
        h * 2.0 + 1, 1 - h, h / 3, h ** 2, -h, ops.maximum(h, 0.5), ops.minimum(h, x), ops.abs(h), ops.square(h),
        ops.exp(h), ops.log1p(ops.abs(h)), ops.rsqrt(ops.abs(h) + 1.0), ops.sqrt(ops.abs(h)), ops.sin(h), ops.tanh(h),
        ops.sigmoid(h), ops.relu(h), ops.relu6(h), ops.silu(h), ops.gelu(h), ops.gelu(h, approximate=False),
        ops.elu(h, 0.5), ops.leaky_relu(h, 0.1), ops.softplus(h), ops.softmax(h, axis=1), ops.log_softmax(h),
        ops.hard_sigmoid(h), ops.where(h > 0, h, 0.25), ops.clip(h, -0.5, 0.5), ops.mod(h, 0.7), ops.floor_divide(h, 0.3),
        ops.normalize(h, axis=-1), ops.cast(ops.logical_and(h > 0, x < 0), "float32"),
        ops.repeat(h[:, :, :1], 4, axis=2), ops.tile(h[..., 1:2], (1, 1, 4)), ops.flip(h, axis=1),
        ops.swapaxes(ops.swapaxes(h, 1, 2), 1, 2), ops.transpose(ops.transpose(h, (0, 2, 1)), (0, 2, 1)),
        ops.concatenate([h[:, :, :2], x[:, :, 2:]], axis=-1), ops.cumsum(h, axis=1), ops.pad(h[:, 1:], ((0, 0), (1, 0), (0, 0))),
        ops.pad(h[:, 1:], ((0, 0), (1, 0), (0, 0)), mode="reflect"), ops.take(h, [1, 0, 3, 2], axis=2),
        ops.einsum("bij,kj->bik", h, np.eye(4, dtype="float32") * 2), ops.matmul(h, np.ones((4, 4), "float32")),
        ops.one_hot(i, 4), ops.expand_dims(ops.cast(i, "float32"), 2) * h, ops.stack([h[:, :, 0]] * 4, axis=2),
        ops.reshape(ops.reshape(h, (-1, 24)), (-1, 6, 4)), ops.squeeze(ops.expand_dims(h, 1), axis=1),
        h - ops.mean(h, axis=1, keepdims=True), h / ops.std(h, axis=(1, 2), keepdims=True),
        h + ops.var(h, axis=1, keepdims=True), h - ops.max(h, axis=-1, keepdims=True), h * ops.sum(i, axis=1)[:, None, None],
        h - ops.logsumexp(h, axis=2, keepdims=True), h - ops.norm(h, axis=-1, keepdims=True),
        h * ops.cast(ops.argmax(h, axis=1, keepdims=True), "float32"), ops.repeat(ops.split(h, 2, axis=1)[1], 2, axis=1), ops.repeat(ops.top_k(h, 2)[0], 2, axis=2),
        h[:, ::-1], ops.moveaxis(ops.moveaxis(h, 1, 2), 2, 1), ops.dot(h, np.ones((4, 4), "float32")),
    ]
    model = keras.Model([x, i], results)
    return model, [random.normal(size=(2, 6, 4)).astype("float32"), random.integers(0, 4, (2, 6)).astype("int32")]


def store_graph(name, model, inputs):
    """The model, inputs x0, x1 ... and what Keras gives for them: y0, y1 ... in the order of gradus' output_names."""
    disturb(model)
    outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    if isinstance(outputs, dict):
        outputs = [outputs[key] for key in sorted(outputs)]
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    arrays = {f"x{k}": x for k, x in enumerate(inputs)} | {f"y{k}": np.array(y) for k, y in enumerate(outputs)}
    model.save(place(name + ".keras"))
    np.savez(place(name + ".npz"), **arrays)


class Scores(keras.Model):
    """Layers that take several inputs, and a cell."""

    def __init__(self):
        super().__init__()
        self.additive = layers.AdditiveAttention()
        self.dot = layers.Attention(use_scale=True, score_mode="concat")
        self.cells = layers.RNN([layers.LSTMCell(4), layers.LSTMCell(2)])

    def call(self, x):
        return self.cells(self.dot([x, self.additive([x, x])]))


@keras.saving.register_keras_serializable("gradus")
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Dense(8, activation="relu")
        self.attention = layers.MultiHeadAttention(2, 4)
        self.grouped = layers.GroupQueryAttention(4, 4, 2)
        self.norm = layers.LayerNormalization()
        self.head = keras.Sequential([layers.Dense(6, activation="tanh"), layers.Dense(2)])

    def call(self, x):
        h = self.embed(x)
        h = h + self.attention(h, h)
        return self.head(self.norm(h + self.grouped(h, h)))


def narrow():
    """Variables of 16 bits."""
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, dtype="bfloat16"), layers.Dense(2, dtype="float16")])


def activations():
    from keras.src.activations import ALL_OBJECTS_DICT
    x = np.concatenate([np.linspace(-6, 6, 25), [-0.5, 0.5]]).astype("float32").reshape(3, 9)
    names = ["linear", "relu", "relu6", "sigmoid", "tanh", "softmax", "log_softmax", "softplus", "softsign", "selu", "elu",
             "celu", "exponential", "gelu", "silu", "leaky_relu", "mish", "hard_sigmoid", "hard_silu", "hard_tanh",
             "hard_shrink", "soft_shrink", "tanh_shrink", "log_sigmoid", "squareplus", "sparse_plus", "sparse_sigmoid"]
    assert set(names) <= set(ALL_OBJECTS_DICT)
    arrays = {name: np.array(ALL_OBJECTS_DICT[name](x)) for name in names}
    np.savez(place("activations.npz"), x=x, **arrays)


if __name__ == "__main__":
    for name, made in (("images", images), ("sequences", sequences), ("shapes", shapes), ("mixed", mixed)):
        model, x = made()
        store(name, model, x)
    x = random.normal(size=(2, 5, 3)).astype("float32")
    net = Net()
    net(x)
    store("net", net, x, whole=False)
    store("narrow", narrow(), random.normal(size=(3, 4)).astype("float32"), whole=False)
    activations()
    store("masked", *masked())
    for name, made in (("cells", cells), ("augmented", augmented), ("chain", chain)):
        store(name, *made())
    for name, made in (("branches", branches), ("residual", residual), ("translation", translation),
                       ("formulas", formulas)):
        store_graph(name, *made())
    x = random.normal(size=(2, 5, 4)).astype("float32")
    scores = Scores()
    scores(x)
    store("scores", scores, x, whole=False)
