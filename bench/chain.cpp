/// A chain of a hundred small ops outside of `function`: what one op costs.
#include "bench/workloads.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus::bench {
namespace {

constexpr int length = 100;

Figures eager_chain() {
  const Tensor a = full({64}, 0.1), b = full({64}, 0.9);
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(-1 + 2 * static_cast<float>(i) / 63);
  const Tensor x = from_values(values, {64});

  const auto chain = [&](Tensor y) {
    for (int i = 0; i < length; ++i) y = i % 3 == 0 ? y + a : i % 3 == 1 ? y * b : tanh(y);
    return y;
  };
  const auto look = [](const Tensor& y) { return y.span<float>()[0]; };
  const auto gradient = [&] {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(chain(x)), x);
  };
  Tensor kept;
  const Figures forward = measure(
      {.step = [&] { look(chain(x)); }, .step_without_reading = [&] { kept = chain(x); }, .wait = [&] { look(kept); }});
  Figures both = measure({.step = [&] { look(gradient()); },
                          .step_without_reading = [&] { kept = gradient(); },
                          .wait = [&] { look(kept); }});
  both.extra["fwd_us_per_op"] = forward.median_us.get<double>() / length;
  both.extra["fwd_bwd_us_per_op"] = both.median_us.get<double>() / length;
  both.extra["fwd_mean_us_per_op"] = forward.extra["mean_us"].get<double>() / length;
  both.extra["fwd_bwd_mean_us_per_op"] = both.extra["mean_us"].get<double>() / length;
  both.extra["fwd_sustained_us_per_op"] = forward.extra["sustained_us"].get<double>() / length;
  return both;
}

}  // namespace

void add_chain(Workloads& workloads) { workloads["eager_chain"] = eager_chain; }

}  // namespace gradus::bench
