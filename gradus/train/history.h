/// Results of training and evaluation: numbers by name.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus {

/// Numbers of a training, one per epoch; those of the validation set one per epoch with a validation.
struct History {
  std::vector<double> loss, validation_loss, seconds;                     // mean losses of epochs; seconds of training
  std::vector<std::pair<std::string, std::vector<double>>> metrics = {};  // by name
  /// The numbers of a name: "loss", "validation_loss", or a metric, such as "sparse_categorical_accuracy" or
  /// "validation_sparse_categorical_accuracy". Keras's names of validation numbers, such as "val_loss", are known, too.
  /// InvalidArgument lists the existing ones.
  const std::vector<double>& operator[](std::string_view metric) const;
};

/// Numbers of an evaluation.
struct Evaluation {
  double loss;                                               // mean over examples
  std::vector<std::pair<std::string, double>> metrics = {};  // by name
  /// The number of a metric, or "loss". InvalidArgument lists the existing ones.
  double operator[](std::string_view metric) const;
};

}  // namespace gradus
