/// Sums and weights: of traced calls in Variables, of all other calls in pending tensors, so that nothing is flushed.
#include "gradus/nn/metrics.h"
#include <limits>
#include "gradus/function/variable.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/reductions.h"

namespace gradus {
namespace {

/// f64: a count of examples in f32 would stop at 2^24.
Tensor nothing() {
  const Untraced outside;
  return zeros({}, f64);
}

/// A sum that grows in traced calls and in others.
struct Total {
  Variable traced{nothing()};
  Tensor pending = nothing();

  void add(const Tensor& x) {
    if (Context::current()) traced.assign_add(x);
    else pending = pending + x;
  }
  double value() const { return traced.value().item() + pending.item(); }
  void reset() {
    traced.assign(nothing());
    pending = nothing();
  }
};

Tensor agrees(const Tensor& y, const Tensor& prediction, double threshold) {
  check_same_shape("BinaryAccuracy", y, prediction);
  const Tensor right = equal(is_floating(y.dtype()) ? y > 0.5 : not_equal(y, 0), prediction > threshold);
  return y.shape().rank() <= 1 ? right : reduce_mean(cast(right, prediction.dtype()), {.axis = {-1}});
}

}  // namespace

struct Metric::State {
  std::string name;
  Rule rule;
  Total sum, weight;
};

Metric::Metric(std::string name, Rule rule, int)
    : state_(std::make_unique<State>(State{std::move(name), std::move(rule), {}, {}})) {
  require(!state_->name.empty(), "Metric: it needs a name");
}
Metric::Metric(const Metric& other) : state_(std::make_unique<State>(*other.state_)) {}
Metric::Metric(Metric&& other) noexcept = default;
Metric& Metric::operator=(Metric other) noexcept {
  state_.swap(other.state_);
  return *this;
}
Metric::~Metric() = default;

void Metric::update(const Tensor& y, const Tensor& prediction) {
  const Tensor values = cast(state_->rule(y, prediction), f64);
  state_->sum.add(reduce_sum(values));
  state_->weight.add(element_count(values, f64));
}

void Metric::update(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
  const Tensor values = cast(state_->rule(y, prediction), f64);
  const Tensor weight = fitted_weight(state_->name, sample_weight, values);
  state_->sum.add(reduce_sum(values * weight));
  state_->weight.add(reduce_sum(weight));
}

double Metric::result() const {
  const double weight = state_->weight.value();
  return weight == 0 ? std::numeric_limits<double>::quiet_NaN() : state_->sum.value() / weight;
}

void Metric::reset() {
  state_->sum.reset();
  state_->weight.reset();
}

const std::string& Metric::name() const { return state_->name; }

SparseCategoricalAccuracy::SparseCategoricalAccuracy()
    : Metric("sparse_categorical_accuracy", [](const Tensor& y, const Tensor& prediction) {
        check_labels("SparseCategoricalAccuracy", y, prediction);
        const Tensor labels = as_indices("accuracy", y), best = argmax(prediction);
        return equal(labels, labels.dtype() == i32 ? best : cast(best, labels.dtype()));
      }) {}

CategoricalAccuracy::CategoricalAccuracy()
    : Metric("categorical_accuracy", [](const Tensor& y, const Tensor& prediction) {
        check_same_shape("CategoricalAccuracy", y, prediction);
        return equal(argmax(y), argmax(prediction));
      }) {}

SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(TopKAccuracyOptions options)
    : Metric("sparse_top_k_categorical_accuracy", [k = options.k](const Tensor& y, const Tensor& prediction) {
        check_labels("SparseTopKCategoricalAccuracy", y, prediction);
        return in_top_k(y, prediction, k);
      }) {
  require(options.k > 0, "SparseTopKCategoricalAccuracy: k must be positive, got ", options.k);
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(TopKAccuracyOptions options)
    : Metric("top_k_categorical_accuracy", [k = options.k](const Tensor& y, const Tensor& prediction) {
        check_same_shape("TopKCategoricalAccuracy", y, prediction);
        return in_top_k(argmax(y), prediction, k);
      }) {
  require(options.k > 0, "TopKCategoricalAccuracy: k must be positive, got ", options.k);
}

BinaryAccuracy::BinaryAccuracy(bool logits)
    : Metric("binary_accuracy", [threshold = logits ? 0.0 : 0.5](const Tensor& y, const Tensor& prediction) {
        return agrees(y, prediction, threshold);
      }) {}

MeanAbsoluteError::MeanAbsoluteError()
    : Metric("mean_absolute_error",
             [](const Tensor& y, const Tensor& prediction) { return mean_absolute_error(y, prediction); }) {}

}  // namespace gradus
