"""Layers, losses, optimizers, metrics and schedules: made with keyword arguments, called, and told apart."""
import unittest

import gradus
import numpy as np
from gradus import nn, ops

# Arguments of classes that cannot be made without any.
GIVEN = {
    "ActivityRegularization": {}, "AdaptiveAveragePooling1D": (2,), "AdaptiveAveragePooling2D": (2,),
    "AdaptiveAveragePooling3D": (2,), "AdaptiveMaxPooling1D": (2,), "AdaptiveMaxPooling2D": (2,),
    "AdaptiveMaxPooling3D": (2,), "AlphaDropout": (0.1,), "CategoryEncoding": (4,), "CenterCrop": (2, 2),
    "Conv1D": (4, 3), "Conv1DTranspose": (4, 3), "Conv2D": (4, 3), "Conv2DTranspose": (4, 3), "Conv3D": (4, 3),
    "Conv3DTranspose": (4, 3), "ConvLSTM1D": (4, 3), "ConvLSTM2D": (4, 3), "ConvLSTM3D": (4, 3), "Cropping1D": (1,),
    "Cropping2D": (1,), "Cropping3D": (1,), "Dense": (3,), "DepthwiseConv1D": (3,), "DepthwiseConv2D": (3,),
    "Dropout": (0.5,), "EinsumDense": ("ab,bc->ac", [3]), "Embedding": (10, 4), "GRU": (3,), "GRUCell": (3,),
    "GaussianDropout": (0.5,), "GaussianNoise": (0.5,), "GroupNormalization": (2,), "GroupedQueryAttention": (4, 4, 2),
    "LSTM": (3,), "LSTMCell": (3,), "Lambda": (ops.relu,), "MultiHeadAttention": (2, 4), "Permute": ([2, 1],),
    "PositionEmbedding": (5,), "RandomBrightness": (0.2,), "RandomContrast": (0.2,), "RandomCrop": (2, 2),
    "RandomRotation": (0.2,), "RandomTranslation": (0.2, 0.2), "RandomZoom": (0.2,), "RepeatVector": (2,),
    "Rescaling": (2.0,), "Reshape": ([4],), "Resizing": (2, 2), "SeparableConv1D": (4, 3), "SeparableConv2D": (4, 3),
    "SimpleRNN": (3,), "SimpleRNNCell": (3,), "SpatialDropout1D": (0.5,), "SpatialDropout2D": (0.5,),
    "SpatialDropout3D": (0.5,), "FBetaScore": (3,), "F1Score": (3,), "MeanIoU": (3,), "IoU": (3, [0, 1]),
    "PrecisionAtRecall": (0.5,), "RecallAtPrecision": (0.5,), "SensitivityAtSpecificity": (0.5,),
    "SpecificityAtSensitivity": (0.5,), "BinaryAccuracy": (True,), "BinaryCrossentropy": (True,),
    "CategoricalCrossentropy": (True,), "SparseCategoricalCrossentropy": (True,), "BinaryFocalCrossentropy": (True,),
    "CategoricalFocalCrossentropy": (True,), "CosineDecay": (0.1, 10), "CosineDecayRestarts": (0.1, 10),
    "PolynomialDecay": (0.1, 10), "InverseTimeDecay": (0.1, 10, 0.5), "ExponentialDecay": (0.1, 10, 0.5),
    "OneCycle": (0.1, 10), "PiecewiseConstantDecay": ([5], [0.1, 0.01]), "UnitNormalization": (), "Softmax": (),
    "Discretization": {"bin_boundaries": [0.0, 1.0]},
    "Metric": ("mine", lambda y, p: ops.abs(y - p)), "PerExampleLoss": (lambda y, p: ops.reduce_mean(ops.abs(y - p), axis=-1),),
    
}
# Made of others.
MADE = {"Bidirectional": lambda: (nn.LSTM(3),), "TimeDistributed": lambda: (nn.Dense(3),),
        "SpectralNormalization": lambda: (nn.Dense(3),), "RNN": lambda: (nn.GRUCell(3),),
        "StackedRNNCells": lambda: ([nn.GRUCell(3), nn.GRUCell(2)],)}
# Bases, of which there are no objects, and what a file alone gives.
BASES = {"Module", "Functional", "LossFunction", "Optimizer", "Schedule", "RecurrentModule", "RecurrentCell", "AttentionModule"}


def classes(*bases):
    return {name: made for name, made in vars(nn).items()
            if isinstance(made, type) and issubclass(made, bases) and made.__name__ == name and name not in BASES}


class Making(unittest.TestCase):
    def test_each_class(self):
        found = classes(nn.Module, nn.LossFunction, nn.Optimizer, nn.Metric, nn.Schedule)
        self.assertGreater(len(found), 150)
        for name, made in found.items():
            with self.subTest(name=name):
                arguments = MADE[name]() if name in MADE else GIVEN.get(name, ())
                each = made(**arguments) if isinstance(arguments, dict) else made(*arguments)
                self.assertIs(type(each), made)

    def test_bases_are_not_made(self):
        for name in BASES:
            with self.subTest(name=name), self.assertRaises(TypeError):
                getattr(nn, name)()

    def test_other_names(self):
        self.assertIs(nn.AvgPool2D, nn.AveragePooling2D)
        self.assertIs(nn.Convolution2D, nn.Conv2D)


class Layers(unittest.TestCase):
    def test_a_dense_layer(self):
        layer = nn.Dense(3, activation="relu", kernel_initializer="ones", name="head")
        x = np.array([[1.0, 2.0], [-1.0, -2.0]], "float32")
        self.assertEqual(layer(x).numpy().tolist(), [[3, 3, 3], [0, 0, 0]])
        self.assertEqual(layer.name, "head")
        self.assertEqual(tuple(layer.kernel.shape), (2, 3))
        self.assertEqual([v.name for v in layer.variables], ["head/kernel", "head/bias"])

    def test_activations_are_functions_names_and_python(self):
        x = np.array([[-1.0, 2.0]], "float32")
        for activation in ("relu", ops.relu, lambda x: ops.maximum(x, 0)):
            layer = nn.Dense(1, activation=activation, kernel_initializer="ones")
            self.assertEqual(layer(x).numpy().tolist(), [[1]])

    def test_training_is_said_by_a_keyword(self):
        dropout = nn.Dropout(0.5)
        x = np.ones(1000, "float32")
        self.assertEqual(float(ops.count_nonzero(dropout(x))), 1000)
        self.assertLess(float(ops.count_nonzero(dropout(x, training=True))), 700)

    def test_a_layer_in_two_models_is_one(self):
        shared = nn.Dense(2)
        first, second = nn.Sequential([shared]), nn.Sequential([shared, nn.Dense(1)])
        first(np.ones([1, 3], "float32")), second(np.ones([1, 3], "float32"))
        self.assertEqual(len(first), 1)
        self.assertIs(first.variables[0], second.variables[0])

    def test_a_class_of_ones_own_derives(self):
        class Scaled(nn.Dense):
            def __init__(self, units):
                super().__init__(units, use_bias=False)
                self.note = "mine"
        layer = Scaled(4)
        self.assertEqual(tuple(layer(np.ones([1, 2], "float32")).shape), (1, 4))
        self.assertEqual((layer.note, isinstance(layer, nn.Module)), ("mine", True))

    def test_recurrent_layers_give_states(self):
        layer = nn.LSTM(3)
        x = np.ones([2, 4, 5], "float32")
        output, state = layer.with_state(x)
        self.assertEqual((tuple(output.shape), len(state)), ((2, 3), 2))
        self.assertEqual(tuple(layer(x, initial_state=state).shape), (2, 3))

    def test_attention(self):
        attention = nn.MultiHeadAttention(2, 4)
        x = np.ones([1, 3, 8], "float32")
        self.assertEqual(tuple(attention(x).shape), (1, 3, 8))
        self.assertEqual(tuple(attention(x, x, x).shape), (1, 3, 8))


class Training(unittest.TestCase):
    def test_losses(self):
        y, p = np.array([[0.0], [1.0]], "float32"), np.array([[0.5], [0.5]], "float32")
        self.assertAlmostEqual(float(nn.MeanSquaredError()(y, p).value), 0.25)
        weighted = nn.MeanSquaredError()(y, p, sample_weight=np.array([1.0, 3.0], "float32"))
        self.assertAlmostEqual(float(weighted.value), 0.25)
        with self.assertRaisesRegex(TypeError, "`from_logits`.*is missing"):
            nn.BinaryCrossentropy()

    def test_metrics(self):
        metric = nn.SparseCategoricalAccuracy()
        metric.update(np.array([0, 1]), np.array([[0.9, 0.1], [0.8, 0.2]], "float32"))
        self.assertEqual(metric.result(), 0.5)
        metric.reset()
        self.assertTrue(np.isnan(metric.result()))
        mine = nn.Metric("mine", lambda y, p: ops.abs(y - p))
        mine.update(np.zeros(2, "float32"), np.array([1.0, 3.0], "float32"))
        self.assertEqual((mine.name, mine.result()), ("mine", 2))

    def test_schedules(self):
        cosine = nn.CosineDecay(0.1, decay_steps=100)
        self.assertAlmostEqual(cosine(50), 0.05)
        adam = nn.Adam(cosine)
        self.assertAlmostEqual(adam.learning_rate(), 0.1)
        self.assertAlmostEqual(nn.SGD(learning_rate=lambda step: 0.5).learning_rate(), 0.5)
        with self.assertRaises(gradus.errors.InvalidArgumentError):
            nn.Adam(learning_rate=-1.0)

    def test_initializers_and_regularizers(self):
        self.assertEqual(nn.initializers.constant(2.0)([2]).numpy().tolist(), [2, 2])
        penalty = nn.regularizers.l2(0.5)
        self.assertAlmostEqual(float(penalty(np.array([1.0, 2.0], "float32"))), 2.5)
        layer = nn.Dense(1, kernel_initializer="ones", kernel_regularizer=penalty)
        layer(np.ones([1, 2], "float32"))
        self.assertEqual([float(loss) for loss in layer.losses], [1])

    def test_callbacks_are_named(self):
        self.assertIsInstance(nn.early_stopping(patience=2, monitor="loss"), nn.Callback)
        with self.assertRaisesRegex(ValueError, "did you mean `automatic`"):
            nn.early_stopping(mode="automatik")


if __name__ == "__main__":
    unittest.main()
