/// Labels of one-hot, binary and sparse targets, and the table of their weights.
#include "gradus/train/class_weights.h"
#include <cmath>
#include <vector>
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::detail {
namespace {

struct Labels {
  Tensor of_examples;    // integers
  std::int64_t classes;  // of the prediction
};

bool is_binary(const Tensor& prediction) { return prediction.shape().rank() < 2 || prediction.shape()[-1] == 1; }

Labels labels_of(const Tensor& y, const Tensor& prediction) {
  const Shape &labels = y.shape(), &places = prediction.shape();
  if (labels.rank() + 1 == places.rank() && !is_binary(prediction)) return {y, places[-1]};
  require(labels.rank() == places.rank() && labels.rank() > 0, "class_weight: y is ", y.spec(),
          ", which holds no classes of the prediction ", prediction.spec(),
          "; expected labels in its shape without the last axis, or one-hot labels in its shape");
  if (!is_binary(prediction)) return {argmax(y, -1), places[-1]};
  return {labels.rank() > 1 ? squeeze(y, {-1}) : y, 2};
}

std::string classes_text(std::int64_t classes) { return text(classes, " classes, 0 to ", classes - 1); }

void check_classes(const ClassWeights& weights, std::int64_t classes) {
  const auto given = static_cast<std::int64_t>(weights.size());
  require(given <= classes, "class_weight: class ", weights.rbegin()->first, " does not occur: the model predicts ",
          classes_text(classes));
  require(given == classes, "class_weight: class ", given, " has no weight: the model predicts ", classes_text(classes),
          ", and each needs one; 1 leaves a class as it is");
}

}  // namespace

void check_class_weights(const ClassWeights& weights) {
  std::int64_t expected = 0;
  for (const auto& [label, weight] : weights) {
    require(label == expected, "class_weight: expected a weight for each class from 0 to one less than the number of ",
            "classes, got one for class ", label, " and none for class ", expected);
    require(std::isfinite(weight) && weight >= 0, "class_weight: the weight of class ", label,
            " must be 0 or positive, got ", weight);
    ++expected;
  }
}

Tensor weights_of_examples(const ClassWeights& weights, const Tensor& y, const Tensor& prediction, const Tensor& mask) {
  const auto [given, classes] = labels_of(y, prediction);
  check_classes(weights, classes);
  std::vector<float> table;
  for (const auto& [label, weight] : weights) table.push_back(static_cast<float>(weight));
  const Tensor integers = is_integer(given.dtype()) ? as_indices("class_weight", given) : cast(given, i32);
  const Tensor labels = labels_that_count(integers, mask);
  return gather(constant(table), maximum(labels, fill_like(labels, 0)));
}

}  // namespace gradus::detail
