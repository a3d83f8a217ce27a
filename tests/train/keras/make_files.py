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
    functional_input = keras.Input((3,))
    keras.Model(functional_input, layers.Dense(2)(functional_input)).save(place("functional.keras"))
    activations()
    store("masked", *masked())
