/// Findings about a trained model on its test set, example by example.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "apps/gradus/data.h"

namespace gradus::command {

struct WorstExample {
  std::int64_t index;             // in the test set
  std::string truth, prediction;  // classes by name or number, or numbers
  double loss;                    // of classes the crossentropy, of numbers the distance
  double probability = 0;         // for classes: that of the prediction
  std::string png = {};           // of a picture: its file
  std::string features = {};      // of a table: "width = 3, height = 4"
};

struct Findings {
  std::vector<std::string> classes = {};
  std::vector<std::vector<std::int64_t>> confusion = {};  // [truth][prediction]; empty of numbers and of many classes
  std::vector<WorstExample> worst = {};                   // the worst first
};

/// Reads the test set once. Of texts there is nothing.
Findings examine(const Module& model, const Data& data, const DataConfig& config);

/// Softmax of a row of scores.
std::vector<double> probabilities(std::span<const float> scores);
/// The name of a class, or its number where it has none.
std::string class_name(const std::vector<std::string>& classes, std::int64_t number);

}  // namespace gradus::command
