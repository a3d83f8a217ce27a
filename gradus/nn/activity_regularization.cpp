/// The regularization that Layer has for every layer, alone.
#include "gradus/nn/activity_regularization.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"

namespace gradus {
namespace {

struct ActivityRegularizationLayer final : ClonedMasked<ActivityRegularizationLayer>, Described {
  explicit ActivityRegularizationLayer(ActivityRegularizationOptions o) : options(o) {
    check_options("ActivityRegularization", o);
    set_activity_regularizer(regularizers::L1L2(options.l1, options.l2));
  }
  std::string_view kind() const override { return "activity_regularization"; }
  LayerConfig config() const override { return {"ActivityRegularization", {{"l1", options.l1}, {"l2", options.l2}}}; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return x; }
  ActivityRegularizationOptions options;
};

}  // namespace

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions options)
    : Module(std::make_shared<ActivityRegularizationLayer>(options)) {}

}  // namespace gradus
