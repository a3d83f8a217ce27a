"""Programs on images: classification, segmentation, a network of keras.applications, reconstruction, an adversary."""
import keras
from keras import layers, ops

from ten_steps import Losses, STEPS, fitted, numbers, program, whole_numbers, with_first_weights


def block(x, filters, stride=1):
    """Two convolutions beside a shortcut."""
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.Activation("relu")(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", use_bias=False)(y))
    if stride > 1:
        x = layers.Conv2D(filters, 1, strides=stride)(x)
    return layers.Activation("relu")(layers.Add()([x, y]))


@program
def residual_classifier():
    x = keras.Input((24, 24, 3))
    y = layers.Conv2D(16, 3, padding="same")(layers.Rescaling(1 / 255)(x))
    y = block(block(y, 16), 32, stride=2)
    model = with_first_weights(keras.Model(x, layers.Dense(5)(layers.GlobalAveragePooling2D()(y))))
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(1e-3, 10)),
                  keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), metrics=["accuracy"])
    labels = keras.utils.to_categorical(whole_numbers(5, 80), 5)
    return fitted(model, whole_numbers(256, 80, 24, 24, 3).astype("float32"), labels, 8)


@program
def segmentation():
    """A small U-Net with skips from each depth."""
    x = keras.Input((32, 32, 3))
    skips, y = [], x
    for filters in (8, 16):
        y = layers.Conv2D(filters, 3, activation="relu", padding="same")(y)
        skips.append(y)
        y = layers.MaxPooling2D()(y)
    y = layers.SeparableConv2D(32, 3, activation="relu", padding="same")(y)
    for filters, skip in zip((16, 8), reversed(skips)):
        y = layers.Conv2DTranspose(filters, 3, strides=2, padding="same")(y)
        y = layers.Concatenate()([layers.LeakyReLU(0.1)(y), skip])
    model = with_first_weights(keras.Model(x, layers.Conv2D(3, 1, activation="softmax")(y)))
    model.compile(keras.optimizers.RMSprop(1e-3), "sparse_categorical_crossentropy", metrics=[keras.metrics.MeanIoU(
        3, sparse_y_true=True, sparse_y_pred=False)])
    images = numbers(40, 32, 32, 3)
    return fitted(model, images, (images.sum(-1) > 1).astype("int32") + (images[..., 0] > 0), 8)


@program
def fine_tuning():
    """A network of keras.applications, built without weights, whose normalizations keep their statistics."""
    base = keras.applications.MobileNetV2((48, 48, 3), alpha=0.35, include_top=False, weights=None, pooling="avg")
    model = with_first_weights(keras.Sequential([keras.Input((48, 48, 3)), base, layers.Dense(4)]))
    for layer in base.layers:
        layer.trainable = not isinstance(layer, layers.BatchNormalization)
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9, nesterov=True),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fitted(model, numbers(160, 48, 48, 3), whole_numbers(4, 160), 16)


class Reconstruction(keras.Model):
    """A variational autoencoder whose noise is an input, with a loss of its own beside the reconstruction."""

    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([layers.Conv2D(8, 3, strides=2, activation="relu", padding="same"),
                                         layers.Flatten(), layers.Dense(8)])
        self.decoder = keras.Sequential([layers.Dense(8 * 8 * 4, activation="relu"), layers.Reshape((8, 8, 4)),
                                         layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="sigmoid")])

    def call(self, inputs):
        image, noise = inputs
        mean, log_variance = ops.split(self.encoder(image), 2, axis=-1)
        self.add_loss(-0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance)))
        return self.decoder(mean + ops.exp(0.5 * log_variance) * noise)


@program
def variational_autoencoder():
    model = Reconstruction()
    images, noise = 1 / (1 + abs(numbers(80, 16, 16, 1))), numbers(80, 4, seed=2)
    model([images[:1], noise[:1]])
    with_first_weights(model).compile(keras.optimizers.Adam(1e-3, clipnorm=1.0), "binary_crossentropy")
    return fitted(model, [images, noise], images, 16)


def adversary_losses(generator, critic, noise, images):
    """The losses of both."""
    of_noise, of_images = critic(generator(noise)), critic(images)
    wanted = ops.binary_crossentropy
    return (ops.mean(wanted(ops.ones_like(of_noise), of_noise, from_logits=True)),
            ops.mean(wanted(ops.zeros_like(of_noise), of_noise, from_logits=True))
            + ops.mean(wanted(ops.ones_like(of_images), of_images, from_logits=True)))


def of_jax(generator, critic, optimizers, noise, images):
    """A step by JAX's functions without states."""
    import jax

    def loss_of(which):
        def loss(weights):
            with keras.StatelessScope(state_mapping=list(zip(which.trainable_variables, weights))):
                return adversary_losses(generator, critic, noise, images)[0 if which is generator else 1]
        return loss
    found = [jax.value_and_grad(loss_of(which))([v.value for v in which.trainable_variables]) for which in (generator, critic)]
    for which, optimizer, (_, gradients) in zip((generator, critic), optimizers, found):
        optimizer.apply(gradients, which.trainable_variables)
    return [loss for loss, _ in found]


def of_tape(generator, critic, optimizers, noise, images):
    """A step by a tape."""
    from gradus.tensorflow import GradientTape

    with GradientTape(persistent=True) as tape:
        losses = adversary_losses(generator, critic, noise, images)
    all_gradients = [tape.gradient(loss, which.trainable_variables) for which, loss in zip((generator, critic), losses)]
    for which, optimizer, gradients in zip((generator, critic), optimizers, all_gradients):
        optimizer.apply(gradients, which.trainable_variables)
    return losses


class Adversaries(keras.Model):
    """Two networks, each with an optimizer, and a train_step of its own."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((6,)), layers.Dense(32, activation="relu"), layers.Dense(12)])
        self.critic = keras.Sequential([keras.Input((12,)), layers.Dense(32, activation="gelu"), layers.Dense(1)])
        self.optimizers = [keras.optimizers.Adam(1e-3, beta_1=0.5) for _ in range(2)]
        for optimizer, which in zip(self.optimizers, (self.generator, self.critic)):
            optimizer.build(which.trainable_variables)

    def train_step(self, data):
        """A step of fit by a backend with a tape."""
        of_generator, of_critic = of_tape(self.generator, self.critic, self.optimizers, *data)
        return {"loss": of_generator + of_critic}


@program
def adversaries():
    model = Adversaries()
    with_first_weights(model.generator), with_first_weights(model.critic, seed=2)
    noise, images = numbers(160, 6), numbers(160, 12, seed=4) + 1
    if keras.backend.backend() == "jax":
        return [float(sum(of_jax(model.generator, model.critic, model.optimizers, noise[at:at + 16], images[at:at + 16])))
                for at in range(0, 16 * STEPS, 16)]
    model.compile()
    losses = Losses(are_means=False)
    model.fit(noise, images, batch_size=16, shuffle=False, verbose=0, callbacks=[losses])
    return losses.all
