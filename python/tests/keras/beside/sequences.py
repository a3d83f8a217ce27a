"""Programs on text, series, tables, graphs, and games."""
import keras
import numpy as np
from keras import layers, ops

from ten_steps import STEPS, fitted, numbers, program, whole_numbers, with_first_weights


@program
def sentiment():
    """Masked texts of several lengths, read from both sides."""
    tokens = whole_numbers(200, 80, 24) + 1
    tokens[np.arange(24) >= whole_numbers(20, 80, 1, seed=1) + 4] = 0
    model = keras.Sequential([keras.Input((24,), dtype="int32"), layers.Embedding(201, 16, mask_zero=True),
                              layers.Bidirectional(layers.LSTM(16)), layers.Dense(1, activation="sigmoid")])
    with_first_weights(model).compile(keras.optimizers.Adam(1e-2), "binary_crossentropy", metrics=["AUC"])
    return fitted(model, tokens, (tokens.sum(-1) % 2).astype("float32")[:, None], 16)


class Block(layers.Layer):
    """A causal block of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.norms = [layers.LayerNormalization(epsilon=1e-6) for _ in range(2)]
        self.wide = keras.Sequential([layers.Dense(4 * width, activation="gelu"), layers.Dense(width)])

    def call(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, use_causal_mask=True)
        return x + self.wide(self.norms[1](x))


class Language(keras.Model):
    """The next token, by a table that is shared by input and output."""

    def __init__(self, tokens, places, width):
        super().__init__()
        self.tokens, self.places = layers.Embedding(tokens, width), layers.Embedding(places, width)
        self.blocks = [Block(width, 2) for _ in range(2)]
        self.norm = layers.LayerNormalization()

    def call(self, tokens):
        x = self.tokens(tokens) + self.places(ops.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return ops.matmul(self.norm(x), ops.transpose(self.tokens.embeddings))


@program
def language_model():
    text = whole_numbers(40, 80, 17)
    model = Language(40, 16, 32)
    model(text[:1, :-1])
    with_first_weights(model).compile(keras.optimizers.AdamW(1e-3, weight_decay=0.01),
                                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fitted(model, text[:, :-1], text[:, 1:], 8)


@program
def forecast():
    """A series by convolutions and a GRU, with callbacks that change the training."""
    series = np.sin(np.arange(200, dtype=np.float32) / 5)[:, None] + 0.1 * numbers(200, 3)
    windows = np.stack([series[k:k + 20] for k in range(160)])
    model = keras.Sequential([keras.Input((20, 3)), layers.Conv1D(8, 3, padding="causal", activation="swish"), layers.GRU(
        16, return_sequences=True), layers.TimeDistributed(layers.Dense(4)), layers.Flatten(), layers.Dense(1)])
    with_first_weights(model).compile(keras.optimizers.Nadam(1e-2), keras.losses.Huber(), metrics=["mae"])
    callbacks = [keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=0),
                 keras.callbacks.EarlyStopping("loss", patience=5), keras.callbacks.TerminateOnNaN()]
    return fitted(model, windows[:80], series[20:100, :1], 16, callbacks)


@program
def table():
    """Numbers and categories in, two outputs with losses and weights of their own."""
    inputs = {"age": keras.Input((1,), name="age"), "size": keras.Input((2,), name="size"),
              "kind": keras.Input((1,), dtype="int32", name="kind"), "place": keras.Input((1,), dtype="int32", name="place")}
    rows = {"age": numbers(160, 1) * 9 + 40, "size": numbers(160, 2), "kind": whole_numbers(5, 160, 1),
            "place": whole_numbers(30, 160, 1)}
    normalization = layers.Normalization()
    normalization.adapt(rows["age"])
    y = layers.Concatenate()([normalization(inputs["age"]), inputs["size"],
                              layers.CategoryEncoding(5, output_mode="one_hot")(inputs["kind"]),
                              layers.Flatten()(layers.Embedding(30, 4)(inputs["place"]))])
    y = layers.Dense(32, activation="elu", kernel_regularizer="l2")(y)
    model = keras.Model(inputs, {"price": layers.Dense(1, name="price")(y),
                                 "sold": layers.Dense(1, activation="sigmoid", name="sold")(y)})
    with_first_weights(model).compile(keras.optimizers.Adagrad(0.05), {"price": "mse", "sold": "binary_crossentropy"},
                                      loss_weights={"price": 0.5, "sold": 2.0})
    return fitted(model, rows, {"price": numbers(160, 1, seed=5), "sold": whole_numbers(2, 160, 1).astype("float32")}, 16)


class GraphConvolution(layers.Layer):
    """Sums the messages of neighbours, by the edges."""

    def __init__(self, units, edges, nodes):
        super().__init__()
        self.edges, self.nodes, self.dense = edges, nodes, layers.Dense(units, activation="relu")

    def call(self, x):
        sources, targets = self.edges
        return self.dense(x + ops.segment_sum(ops.take(x, sources, axis=0), targets, num_segments=self.nodes))


@program
def graph():
    """The classes of a graph's nodes, of which half are known."""
    nodes, edges = 60, whole_numbers(60, 2, 240)
    model = keras.Sequential([keras.Input((8,), batch_size=nodes), GraphConvolution(16, edges, nodes),
                              GraphConvolution(16, edges, nodes), layers.Dense(3)])
    with_first_weights(model).compile(keras.optimizers.Adamax(1e-2),
                                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    known = (np.arange(nodes) % 2).astype(np.float32)
    x, y = numbers(nodes, 8), whole_numbers(3, nodes)
    model.reset_metrics()
    found = []
    for _ in range(STEPS):
        found.append(float(model.train_on_batch(x, y, sample_weight=known)))
        model.reset_metrics()
    return found


@program
def game():
    """Q-learning of a walk along a line: targets come from a second network, which follows the first."""
    def network():
        return keras.Sequential([keras.Input((8,)), layers.Dense(24, activation="tanh"), layers.Dense(2)])
    model, target = with_first_weights(network()), network()
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.MeanSquaredError())
    rng = np.random.default_rng(3)
    found = []
    for step in range(STEPS):
        if step % 4 == 0:
            target.set_weights(model.get_weights())
        places, actions = rng.integers(0, 8, 32), rng.integers(0, 2, 32)
        after = np.clip(places + 2 * actions - 1, 0, 7)
        rewards = (after == 7).astype(np.float32)
        values = model.predict(np.eye(8, dtype=np.float32)[places], verbose=0)
        values[np.arange(32), actions] = rewards + 0.9 * target.predict(np.eye(8, dtype=np.float32)[after], verbose=0).max(-1)
        found.append(float(model.train_on_batch(np.eye(8, dtype=np.float32)[places], values)))
        model.reset_metrics()
    return found


@program
def mixed_precision():
    """A mixer in bfloat16 whose weights are float32."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        x = keras.Input((16, 24))
        y = layers.Permute((2, 1))(layers.Dense(16, activation="gelu")(layers.Permute((2, 1))(layers.LayerNormalization()(x))))
        y = layers.Dense(24, activation="gelu")(layers.LayerNormalization()(x + y))
        model = keras.Model(x, layers.Dense(4, dtype="float32")(layers.GlobalAveragePooling1D()(y)))
    finally:
        keras.config.set_dtype_policy("float32")
    with_first_weights(model).compile(keras.optimizers.Lion(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    # Backends round sums to bfloat16, of 8 bits, at other places.
    return fitted(model, numbers(160, 16, 24), whole_numbers(4, 160), 16), 1e-2
