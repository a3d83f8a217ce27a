/// What Layer does for every layer, alone.
#include "gradus/nn/activity_regularization.h"
#include "gradus/nn/cloned.h"

namespace gradus {
namespace {

struct ActivityRegularizationLayer final : ClonedMasked<ActivityRegularizationLayer> {
  explicit ActivityRegularizationLayer(ActivityRegularizationOptions options) {
    set_activity_regularizer(regularizers::L1L2(options.l1, options.l2));
  }
  std::string_view kind() const override { return "activity_regularization"; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return x; }
};

}  // namespace

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions options)
    : Module(std::make_shared<ActivityRegularizationLayer>(options)) {}

}  // namespace gradus
