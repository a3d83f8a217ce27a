"""compile() by names: every loss, metric and optimizer that Keras documents is made, or refused with the reason."""
import unittest

import numpy as np

import gradus
from gradus import nn

LOSSES = """BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
CategoricalGeneralizedCrossEntropy CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLDivergence LogCosh MeanAbsoluteError
MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy SquaredHinge
Tversky BCE KLD MAE MAPE MSE MSLE bce binary_crossentropy binary_focal_crossentropy categorical_crossentropy
categorical_focal_crossentropy categorical_generalized_cross_entropy categorical_hinge circle cosine_similarity ctc dice hinge
huber kl_divergence kld log_cosh logcosh mae mape mean_absolute_error mean_absolute_percentage_error mean_squared_error
mean_squared_logarithmic_error mse msle poisson sparse_categorical_crossentropy squared_hinge tversky""".split()
METRICS = """AUC BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy CategoricalCrossentropy CategoricalHinge
CosineSimilarity FalseNegatives FalsePositives Hinge KLDivergence LogCoshError MeanAbsoluteError MeanAbsolutePercentageError
MeanSquaredError MeanSquaredLogarithmicError Poisson Precision R2Score Recall RootMeanSquaredError SparseCategoricalAccuracy
SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SquaredHinge TopKCategoricalAccuracy TrueNegatives TruePositives BCE
MAE MAPE MSE MSLE Accuracy accuracy acc auc bce binary_accuracy binary_crossentropy binary_focal_crossentropy binary_io_u
categorical_accuracy categorical_crossentropy categorical_focal_crossentropy categorical_hinge cosine_similarity false_negatives
false_positives hinge huber kl_divergence log_cosh log_cosh_error mae mape mean_absolute_error mean_absolute_percentage_error
mean_squared_error mean_squared_logarithmic_error mse msle poisson precision r2_score recall root_mean_squared_error
sparse_categorical_accuracy sparse_categorical_crossentropy sparse_top_k_categorical_accuracy squared_hinge
top_k_categorical_accuracy true_negatives true_positives""".split()
OPTIMIZERS = "Adadelta Adagrad Adam AdamW Adamax Ftrl Lamb Lion Nadam RMSprop SGD adadelta adagrad adam adamax adamw ftrl lamb " \
             "lion nadam rmsprop sgd".split()
# Names that alone say too little, also for Keras.
NEED_ARGUMENTS = """F1Score FBetaScore IoU MeanIoU PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity
SpecificityAtSensitivity f1_score f_beta_score io_u mean_io_u precision_at_recall recall_at_precision sensitivity_at_specificity
specificity_at_sensitivity""".split()
# The library has none of these.
MISSING = {"metric": ["ConcordanceCorrelation", "PearsonCorrelation", "OneHotIoU", "OneHotMeanIoU", "pearson_correlation", "mean"],
           "loss": ["absolute", "cosine_proximity"],
           "optimizer": ["adafactor", "muon", "lossscaleoptimizer", "multioptimizer", "schedulefreeadamw"]}


def compiled(**options):
    model = nn.Sequential([nn.Dense(1)])
    model.compile(**{"optimizer": "sgd", "loss": "binary_crossentropy"} | options)
    return model._training


class Names(unittest.TestCase):
    def test_all_are_made(self):
        for name in LOSSES:
            self.assertIsInstance(compiled(loss=name).loss, nn.LossFunction, name)
        for name in METRICS:
            (metric,) = compiled(metrics=[name]).metrics
            self.assertIsInstance(metric, nn.Metric, name)
        for name in OPTIMIZERS:
            self.assertIsInstance(compiled(optimizer=name).optimizer, nn.Optimizer, name)

    def test_others_say_why(self):
        for name in NEED_ARGUMENTS:
            with self.assertRaisesRegex(ValueError, f"the metric '{name}' needs arguments: .* is missing"):
                compiled(metrics=[name])
        for kind, names in MISSING.items():
            for name in names:
                with self.assertRaisesRegex(ValueError, f"there is no {kind} '{name}'"):
                    compiled(**{kind + "s" if kind == "metric" else kind: [name] if kind == "metric" else name})
        with self.assertRaisesRegex(ValueError, "did you mean 'mean_absolute_error'"):
            compiled(loss="mean_absolut_error")
        with self.assertRaisesRegex(TypeError, "the metric Precision is no loss"):
            compiled(loss=nn.Precision())

    def test_a_name_is_the_function(self):
        y = np.array([[0.1, 0.9], [0.7, 0.3]], np.float32)
        p = np.array([[0.2, 0.8], [0.5, 0.5]], np.float32)
        distance = np.abs(y - p)
        wanted = {"mae": distance.mean(), "mse": (distance ** 2).mean(), "mape": (100 * distance / y).mean(),
                  "kld": (y * np.log(y / p)).sum(1).mean(), "log_cosh": np.log(np.cosh(distance)).mean(),
                  "bce": -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(),
                  "categorical_crossentropy": -(y * np.log(p)).sum(1).mean(),
                  "cosine_similarity": -((y * p).sum(1) / np.linalg.norm(y, axis=1) / np.linalg.norm(p, axis=1)).mean()}
        for name, value in wanted.items():
            self.assertAlmostEqual(float(compiled(loss=name).loss(y, p)), value, 5, name)
            if name == "log_cosh":
                continue
            (metric,) = compiled(metrics=[name]).metrics
            metric.update(gradus.constant(y), gradus.constant(p))
            self.assertAlmostEqual(metric.result(), -value if name == "cosine_similarity" else value, 5, name)
        self.assertAlmostEqual(float(compiled(loss=nn.MeanAbsoluteError()).loss(y, p)), wanted["mae"], 6)

    def test_a_training_by_names(self):
        x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        model = nn.Sequential([nn.Dense(1)])
        model.compile("sgd", "mae", metrics=["mse", "cosine_similarity"])
        history = model.fit(x, 2 * x, epochs=2, verbose=False).history
        self.assertEqual(len(history["mse"]), 2)
        self.assertLess(history["loss"][1], history["loss"][0])


if __name__ == "__main__":
    unittest.main()
