/// What devices of plugins do not do is refused, before anything happens.
#include "tests/errors.h"
#include "tests/xla/plugin.h"

namespace gradus::testing_plugin::refusals_test {
namespace {

class Refusals : public WithPlugin {
 protected:
  void SetUp() override {
    WithPlugin::SetUp();
    if (IsSkipped()) return;
    set_default_device(device());
  }
  void TearDown() override { set_default_device(cpu()); }
};

TEST_F(Refusals, ParameterServersComputeOnTheProcessor) {
  expect_error<Unavailable>([] { const ParameterServerStrategy strategy(Cluster::simulated(2, 1)); },
                            {"the default device is ", "computed on the processor", "set_default_device(cpu())"});
}

TEST_F(Refusals, BudgetsOfBytesAreThePlugins) {
  const auto twice = function([](Tensor x) { return x * 2; }, {.max_bytes = 1000});
  expect_error<Unavailable>([&] { twice(ones({4})).item(); }, {"max_bytes", "plugin"});
}

}  // namespace
}  // namespace gradus::testing_plugin::refusals_test
