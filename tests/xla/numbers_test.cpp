/// Numbers that a compiler of a plugin may change beyond rounding: what it makes of them is held within bounds.
#include <cmath>
#include "tests/xla/plugin.h"
#include "gradus/base/rooms.h"

namespace gradus::testing_plugin::numbers_test {
namespace {

using NumbersOnPlugin = WithPlugin;

struct Distance {
  const char* name;
  std::function<Tensor(Tensor)> f;
};

/// Logits of 1e11 are 16,384 apart. A product that is rounded where the maximum is found, and not where it is
/// subtracted, is up to half of that beside its maximum.
TEST_F(NumbersOnPlugin, OneOfLargeLogitsIsTheirMaximum) {
  const Distance all[] = {
      {"softmax", [](Tensor x) { return softmax(x * 0.3); }},
      {"softmax of rows", [](Tensor x) { return softmax(x * 0.3, 0); }},
      {"log_softmax", [](Tensor x) { return log_softmax(x * (1 / 169.0)); }},
      {"softmax of a mean", [](Tensor x) { return softmax(reduce_mean(reshape(x, {8, 8, 50}), {.axis = {1}})); }},
      {"masked_softmax", [](Tensor x) { return masked_softmax(x * 0.3, x > 0); }},
      {"crossentropy",
       [](Tensor x) { return sparse_categorical_crossentropy(fill({64}, 7, i32), x * 0.3, from_logits); }},
      {"gradient",
       [](Tensor x) {
         GradientTape tape;
         tape.watch(x);
         const Tensor loss = reduce_sum(sparse_categorical_crossentropy(fill({64}, 7, i32), x * 0.3, from_logits));
         return tape.gradient(loss, x);
       }},
  };
  const DeviceScope scope(device());
  for (const auto& [low, high] : {std::pair{1e12, 1.1e12}, {-1.1e12, -1e12}, {1e20, 1.1e20}, {-5, 5}}) {
    const Tensor x = random::uniform({64, 50}, {.low = low, .high = high, .seed = 3});
    for (const Distance& each : all) {
      const auto step = function(each.f);
      for (int k = 0; k < 2; ++k)  // the processor, then the device
        for (const float y : step(x).to_vector<float>())
          ASSERT_TRUE(std::isfinite(y)) << each.name << " of numbers from " << low;
    }
  }
}

/// What is no number or infinite stays what it is on the processor.
TEST_F(NumbersOnPlugin, SoftmaxKeepsWhatIsNoNumber) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows{1, 2, nan, 3, /**/ 1, inf, 2, 3, /**/ -inf, -inf, -inf, -inf, /**/ 0, -inf, 1, -inf};
  const auto step = function([](Tensor x) { return softmax(x); });
  const auto on = [&](const Device& device) {
    const DeviceScope scope(device);
    const Tensor x = from_values(rows, {4, 4});
    step(x);
    return step(x).to_vector<float>();
  };
  const std::vector<float> here = on(cpu(0)), there = on(device());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_TRUE(std::isnan(here[i]) ? std::isnan(there[i]) : std::abs(there[i] - here[i]) < 1e-6)
        << i << ": " << there[i] << ", on the processor " << here[i];
}

}  // namespace
}  // namespace gradus::testing_plugin::numbers_test
