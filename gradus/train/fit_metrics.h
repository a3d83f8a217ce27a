/// The metrics of a training: a list, or lists by the names of the model's outputs.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>
#include "gradus/nn/metrics.h"

namespace gradus {

/// The metrics of one output of a model.
struct OutputMetrics {
  /// One metric, or a list: {"digit", SparseCategoricalAccuracy()}.
  OutputMetrics(std::string output, Metric metric) : output(std::move(output)), metrics{std::move(metric)} {}
  OutputMetrics(std::string output, std::initializer_list<Metric> metrics)
      : output(std::move(output)), metrics(metrics) {}
  OutputMetrics(std::string output, std::vector<Metric> metrics)
      : output(std::move(output)), metrics(std::move(metrics)) {}
  std::string output;           // its name
  std::vector<Metric> metrics;  // called <output>_<metric> in histories
};

/// Metrics for models with one output, {MeanAbsoluteError()}, or by the outputs' names,
/// {{"digit", SparseCategoricalAccuracy()}, {"even", {BinaryAccuracy(from_logits), AUC()}}}.
class FitMetrics {
 public:
  FitMetrics() = default;
  FitMetrics(std::vector<Metric> metrics) {
    for (Metric& each : metrics) entries_.push_back({std::move(each), {}});
  }
  FitMetrics(std::initializer_list<Metric> metrics) : FitMetrics(std::vector<Metric>(metrics)) {}
  FitMetrics(std::initializer_list<OutputMetrics> outputs) {
    for (const OutputMetrics& of_output : outputs)
      for (const Metric& each : of_output.metrics) entries_.push_back({each, of_output.output});
  }
  std::size_t size() const { return entries_.size(); }  // number of metrics
  bool empty() const { return entries_.empty(); }       // true without any

  // For the rooms of the library.
  struct Entry {
    Metric metric;
    std::string output;  // empty: of a model with one output
    /// "digit_" for an output with a name.
    std::string prefix() const { return output.empty() ? "" : output + "_"; }
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace gradus
