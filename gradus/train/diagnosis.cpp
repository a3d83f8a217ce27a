/// The walk over the results of a step, in the order in which they were computed.
#include "gradus/train/diagnosis.h"
#include <cmath>
#include <optional>
#include "gradus/function/mode.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/train/op_by_op.h"

namespace gradus {
namespace {

template <class T> std::optional<double> first_odd(const Node& node) {
  const T* values = static_cast<const T*>(node.value.get()->host());
  const std::int64_t n = node.spec.shape.size();
  for (std::int64_t i = 0; i < n; ++i)
    if (const auto value = static_cast<double>(values[i]); !std::isfinite(value)) return value;
  return {};
}

/// The first element that is not finite, of a node that has its value.
std::optional<double> odd_value(const Node& node) {
  if (!node.value) return {};
  return with_type(node.spec.dtype, [&]<class T>(T) -> std::optional<double> {
    if constexpr (FloatingElement<T>) return first_odd<T>(node);
    else return {};
  });
}

std::optional<double> odd_value(const Tensor& x) {
  x.observed();
  return odd_value(*x.node());
}

/// "the output of layer dense_1: `exp` gives inf", or nothing.
std::optional<std::string> first_odd_op(std::span<const Tensor> results, const char* what) {
  for (const Node* node : history(results)) {
    const auto value = odd_value(*node);
    if (!value) continue;
    const std::string path = scope_path(node->scope);
    return text(what, path.empty() ? "of the loss" : "of layer " + path, ": `", node->op->name, "` gives ", *value);
  }
  return {};
}

/// Puts back what a step changes.
class PutBack {
 public:
  explicit PutBack(const Module& model, const Task& task, Optimizer& optimizer)
      : variables_(model.variables() + optimizer.variables()) {
    for (Optimizer& each : task.optimizers) variables_ = variables_ + each.variables();
    for (const Variable& each : variables_) values_.push_back(each.value());
  }
  ~PutBack() {
    for (std::size_t i = 0; i < values_.size(); ++i) variables_[i].assign(values_[i]);
  }
  PutBack(const PutBack&) = delete;

 private:
  Variables variables_;
  Tensors values_;
};

constexpr std::string_view not_again =
    "it did not come again when the step was repeated, so it hangs on random numbers, such as a dropout's";

/// As find_divergence, for a step of the user's own: "the output of layer dense: `exp` gives inf".
std::string find_in_own_step(const Module& model, const Task& task, Optimizer& optimizer, const Tensors& batch) {
  const PutBack afterwards(model, task, optimizer);
  const Logs logs = task.train(batch);
  for (const Logs::Entry& each : logs.entries()) {
    const Tensor value = each.value.value();
    if (auto found = first_odd_op({&value, 1}, "the output ")) return text("log `", each.name, "`, in ", *found);
  }
  return std::string(not_again);
}

}  // namespace

std::string find_divergence(const Module& model, const Task& task, Optimizer& optimizer, const Tensors& batch) {
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (is_floating(batch[i].dtype()))
      if (const auto value = odd_value(batch[i])) return text("field ", i, " of this batch holds ", *value);
  for (const Variable& variable : model.variables())
    if (const auto value = odd_value(variable.value()))
      return text("variable ", variable.name(), " holds ", *value,
                  ": the update of the step before gave it, so its gradient there was not finite or too large");
  const OpByOp steps;
  const ModeScope mode(CallMode::training);
  if (task.train) return find_in_own_step(model, task, optimizer, batch);
  GradientTape tape;
  const detail::Examined examined = task.examine(batch);
  const Loss total = examined.total();
  const Tensor loss = total.value();
  if (auto found = first_odd_op({&loss, 1}, "the output ")) return *found;
  const Gradients gradients = tape.gradient(total, model.trainable_variables());
  Tensors all;
  for (std::size_t i = 0; i < gradients.size(); ++i) all.push_back(gradients[i]);
  if (auto found = first_odd_op(all, "the gradient ")) return *found;
  return std::string(not_again);
}

}  // namespace gradus
