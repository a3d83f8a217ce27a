/// What training and evaluation leave behind: numbers by name.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus {

/// One number an epoch.
struct History {
  std::vector<double> loss, validation_loss, seconds;
  std::vector<std::pair<std::string, std::vector<double>>> metrics = {};
  /// Of a metric, such as "sparse_categorical_accuracy" or "validation_sparse_categorical_accuracy". InvalidArgument
  /// lists those there are.
  const std::vector<double>& operator[](std::string_view metric) const;
};

struct Evaluation {
  double loss;  // the mean over examples
  std::vector<std::pair<std::string, double>> metrics = {};
  /// InvalidArgument lists those there are.
  double operator[](std::string_view metric) const;
};

}  // namespace gradus
