/// Sums and weights. Traced calls keep them in Variables, all other calls in pending tensors, so that nothing is
/// flushed.
#include "gradus/nn/metrics.h"
#include <limits>
#include "gradus/function/variable.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// f64: a count of examples in f32 would stop at 2^24.
Tensor nothing(std::int64_t count) {
  const Untraced outside;
  return zeros({count}, f64);
}

/// Sums that grow in traced calls and in others.
struct Totals {
  explicit Totals(std::int64_t n) : count(positive(n)) {}
  static std::int64_t positive(std::int64_t n) {
    require(n > 0, "Metric: it has ", n, " totals, expected a positive number");
    return n;
  }
  std::int64_t count;
  Variable traced{nothing(count), {}, {.aggregation = Aggregation::sum}};
  Tensor pending = nothing(count);

  void add(const Tensor& x) {
    if (Context::current()) traced.assign_add(x);
    else pending = pending + x;
  }
  std::vector<double> values() const { return (traced.value() + pending).to_vector<double>(); }
  /// All of it in the Variable; within a trace what traced calls added.
  const Variable& gathered() {
    if (Context::current()) return traced;
    traced.assign_add(pending);
    pending = nothing(count);
    return traced;
  }
  void reset() {
    traced.assign(nothing(count));
    pending = nothing(count);
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
  Gather gather;
  FinishAll finish;
  Totals totals;
};

namespace {
/// `state` points to a Metric::State.
auto& living(const auto& state) {
  require(static_cast<bool>(state), "this metric is empty: it was moved from; use the one that it was moved to");
  return *state;
}
}  // namespace

Metric::Metric(std::string name, Rule rule, int)
    : Metric(
          name, 2,
          [name, rule = std::move(rule)](const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
            // As losses do: a narrow prediction, of a mixed policy for instance, is compared with labels of f32.
            const Tensor values = cast(rule(widened(y), widened(prediction)), f64);
            if (!sample_weight.defined()) return stack({reduce_sum(values), element_count(values, f64)});
            const Tensor weight = fitted_weight(name, sample_weight, values);
            return stack({reduce_sum(multiply_no_nan(values, weight)), reduce_sum(weight)});
          },
          [](std::span<const double> totals) {
            return totals[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : totals[0] / totals[1];
          }) {}
Metric::Metric(std::string name, std::int64_t count, Gather gather, Finish finish)
    : Metric(std::move(name), count, std::move(gather),
             finish ? FinishAll([finish](std::span<const double> totals) { return std::vector{finish(totals)}; })
                    : FinishAll()) {}
Metric::Metric(std::string name, std::int64_t count, Gather gather, FinishAll finish)
    : state_(std::make_unique<State>(State{std::move(name), std::move(gather), std::move(finish), Totals(count)})) {
  require(!state_->name.empty(), "Metric: it needs a name");
  require(static_cast<bool>(state_->gather) && static_cast<bool>(state_->finish), "Metric ", state_->name,
          ": it needs a function that gathers and one that finishes");
}

Tensor Metric::weights(const Tensor& sample_weight, const Tensor& per_example) {
  const Tensor values = cast(per_example, f64);
  return sample_weight.defined() ? fitted_weight("Metric", sample_weight, values) : ones_like(values);
}
Metric::Metric(const Metric& other) : state_(std::make_unique<State>(living(other.state_))) {}
Metric::Metric(Metric&& other) noexcept = default;
Metric& Metric::operator=(Metric other) noexcept {
  state_.swap(other.state_);
  return *this;
}
Metric::~Metric() = default;

Variables Metric::variables() const { return Variables{living(state_).totals.gathered()}; }

void Metric::update(const Tensor& y, const Tensor& prediction) { update(y, prediction, {}); }
void Metric::update(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
  update_weighed(y, prediction, joint_weight(sample_weight, SequenceMask::of(prediction), prediction.dtype()));
}
void Metric::update_weighed(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
  const Tensor labels = labels_that_count(y, sample_weight), classes = labels_that_count(prediction, sample_weight);
  living(state_).totals.add(living(state_).gather(labels, classes, sample_weight));
}

double Metric::result() const {
  const std::vector<double> all = results();
  require(all.size() == 1, name(), ": it has ", all.size(),
          " results, one a class: results() gives all; for their mean ",
          "make it with {.average = ClassAverage::macro}");
  return all[0];
}
std::vector<double> Metric::results() const { return living(state_).finish(living(state_).totals.values()); }
std::vector<std::string> Metric::result_names() const {
  const State& state = living(state_);
  const std::size_t count = state.finish(std::vector<double>(static_cast<std::size_t>(state.totals.count))).size();
  if (count == 1) return {state.name};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(text(state.name, '_', i));
  return names;
}
void Metric::reset() { living(state_).totals.reset(); }

const std::string& Metric::name() const { return living(state_).name; }

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
  check_options("SparseTopKCategoricalAccuracy", options);
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(TopKAccuracyOptions options)
    : Metric("top_k_categorical_accuracy", [k = options.k](const Tensor& y, const Tensor& prediction) {
        check_same_shape("TopKCategoricalAccuracy", y, prediction);
        return in_top_k(argmax(y), prediction, k);
      }) {
  check_options("TopKCategoricalAccuracy", options);
}

BinaryAccuracy::BinaryAccuracy(bool logits)
    : Metric("binary_accuracy", [threshold = logits ? 0.0 : 0.5](const Tensor& y, const Tensor& prediction) {
        return agrees(y, prediction, threshold);
      }) {}

MeanAbsoluteError::MeanAbsoluteError()
    : Metric("mean_absolute_error",
             [](const Tensor& y, const Tensor& prediction) { return mean_absolute_error(y, prediction); }) {}

}  // namespace gradus
