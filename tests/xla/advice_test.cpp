/// Advice about a training on a device of a plugin: what is the processor's alone is not tried there.
#include <algorithm>
#include "tests/xla/plugin.h"

namespace gradus::testing_plugin::advice_test {
namespace {

class AdviceOnPlugin : public WithPlugin {
 protected:
  void SetUp() override {
    WithPlugin::SetUp();
    if (!IsSkipped()) set_default_device(device());
  }
  void TearDown() override { set_default_device(cpu()); }
};

TEST_F(AdviceOnPlugin, LeversOfTheProcessorAreNotTried) {
  const Tensor x = random::normal({128, 3}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, x * 2).batch(16);
  Sequential model{Dense(8, relu), Dense(3)};
  Adam optimizer;
  const Advice advice =
      advise(model, optimizer, MeanSquaredError(), dataset,
             {.max_seconds = 5, .levers = {"fuse", "threads", "recompute", "kernel cache", "replicas"}});
  const std::string where = text(device());
  for (const Lever& lever : advice.levers) {
    SCOPED_TRACE(lever.name + ": " + lever.reason);
    EXPECT_FALSE(lever.worth_it && lever.name != "replicas");
    EXPECT_EQ(lever.reason.find("does not work"), std::string::npos);
    EXPECT_LT(lever.max_relative_difference, 1e-3);
    if (lever.name == "kernel cache") EXPECT_NE(lever.reason.find("GRADUS_XLA_CACHE"), std::string::npos);
    else if (lever.name != "replicas") EXPECT_NE(lever.reason.find(where), std::string::npos);
    else EXPECT_EQ(lever.change.find("cpu"), std::string::npos) << lever.change;
  }
  EXPECT_EQ(advice.levers.size(), 5u);
}

}  // namespace
}  // namespace gradus::testing_plugin::advice_test
