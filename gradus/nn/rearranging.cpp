/// Layers of one op each.
#include "gradus/nn/rearranging.h"
#include "gradus/nn/function_layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus {
namespace {

Tensor reshaped(const Tensor& x, const Shape& target) {
  require(x.shape().rank() >= 1, "Reshape: expected a batch, got a scalar");
  std::int64_t elements = 1, known = 1;
  for (int i = 1; i < x.shape().rank(); ++i) elements = dimension::multiply(elements, x.shape()[i]);
  Shape shape{x.shape()[0]};
  int open = 0;
  for (std::int64_t d : target) {
    shape.push_back(d);
    if (d == any_size) open = shape.rank() - 1;
    else known = dimension::multiply(known, d);
  }
  if (open) {
    const auto rest = dimension::divide(elements, known);
    require(rest.has_value(), "Reshape: an example of ", x.spec(), " does not fit into ", brackets(target));
    shape.set(open, *rest);
  } else {
    require(elements == known, "Reshape: an example of ", x.spec(), " does not fit into ", brackets(target));
  }
  return reshape(x, shape);
}

Tensor permuted(const Tensor& x, const std::vector<int>& order) {
  require(x.shape().rank() == static_cast<int>(order.size()) + 1, "Permute: the input is ", x.spec(), ", expected ",
          order.size(), " dimensions after the batch");
  std::vector<int> all{0};
  for (int axis : order) {
    require(axis > 0, "Permute: dimensions are counted from 1, got ", axis);
    all.push_back(axis);
  }
  return transpose(x, all);
}

Tensor repeated(const Tensor& x, std::int64_t n) {
  require(x.shape().rank() == 2, "RepeatVector: the input is ", x.spec(), ", expected [batch, features]");
  return broadcast_to(expand_dims(x, 1), {x.shape()[0], n, x.shape()[1]});
}

Tensor rectified(const Tensor& x, const ReLUOptions& o) {
  Tensor y = o.threshold == 0 && o.negative_slope == 0
                 ? relu(x)
                 : where(x > o.threshold, x, (x - o.threshold) * o.negative_slope);
  return o.max_value ? minimum(y, *o.max_value) : y;
}

struct PReLULayer final : ClonedMasked<PReLULayer>, Described {
  explicit PReLULayer(std::vector<int> axes) : shared_axes(std::move(axes)) {}
  std::string_view kind() const override { return "p_re_lu"; }
  LayerConfig config() const override { return {"PReLU", {{"shared_axes", listed(shared_axes)}}}; }
  void build(const Spec& input) override {
    Shape alphas = input.shape;
    require(alphas.rank() >= 2, "PReLU: the input is ", input, ", expected [batch, ...]");
    alphas.erase(0);
    for (int axis : shared_axes) {
      require(axis >= 1 && axis <= alphas.rank(), "PReLU: shared axis ", axis, " is none of ", input);
      alphas.set(axis - 1, 1);
    }
    for (std::int64_t d : alphas)
      require(d >= 0, "PReLU: the input is ", input, ": sizes must be known, or along shared axes");
    add_variable("alpha", zeros(alphas, input.dtype));
  }
  Tensor call(const Tensor& x) const override { return relu(x) + parameter(0) * minimum(x, 0); }
  ChannelFlow channel_flow() const override {
    const Shape& alphas = variable(0).shape();
    const bool shared = alphas.back() == 1;
    return {.kind = ChannelFlow::Kind::apart, .axes = {{.inputs = shared ? -1 : alphas.rank() - 1}}};
  }
  std::vector<int> shared_axes;
};

/// Among the places that count where `axis` is one that the mask has; the others give 0.
struct SoftmaxLayer final : ClonedMasked<SoftmaxLayer>, Described {
  explicit SoftmaxLayer(int a) : axis(a) {}
  std::string_view kind() const override { return "softmax"; }
  LayerConfig config() const override { return {"Softmax", {{"axis", std::int64_t{axis}}}}; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return softmax(x, axis); }
  bool mixes_places(const Shape& input) const override { return input.rank() > 2 && input.normalized(axis) == 1; }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    const int masked_axes = mask.shape().rank();
    if (x.shape().normalized(axis) >= masked_axes) return softmax(x, axis);
    Tensor counts = mask;
    while (counts.shape().rank() < x.shape().rank()) counts = expand_dims(counts, -1);
    return masked_softmax(x, counts, axis);
  }
  int axis;
};

}  // namespace

Reshape::Reshape(const Shape& target)
    : Module(layer_of("reshape", [target](const Tensor& x) { return reshaped(x, target); },
                      {"Reshape", {{"target_shape", listed(target)}}})) {
  int open = 0;
  for (std::int64_t d : target) {
    require(d >= any_size, "Reshape: expected sizes, one of them -1, got ", brackets(target));
    open += d == any_size;
  }
  require(open <= 1, "Reshape: only one dimension can be worked out, got ", brackets(target));
}
Permute::Permute(std::vector<int> order)
    : Module(layer_of("permute", [order](const Tensor& x) { return permuted(x, order); },
                      {"Permute", {{"dims", listed(order)}}})) {}
RepeatVector::RepeatVector(std::int64_t n)
    : Module(layer_of("repeat_vector", [n](const Tensor& x) { return repeated(x, n); }, {"RepeatVector", {{"n", n}}})) {
  require(n >= 0, "RepeatVector: expected a number that is not negative, got ", n);
}
ReLU::ReLU() : ReLU(ReLUOptions{}) {}
ReLU::ReLU(ReLUOptions options)
    : Module(layer_of(
          "re_lu", [options](const Tensor& x) { return rectified(x, options); },
          {"ReLU",
           {{"max_value", options.max_value ? OptionValue(*options.max_value) : OptionValue()},
            {"negative_slope", options.negative_slope},
            {"threshold", options.threshold}}},
          Reach::element)) {
  check_options("ReLU", options);
}
LeakyReLU::LeakyReLU(double negative_slope)
    : Module(layer_of(
          "leaky_re_lu", [negative_slope](const Tensor& x) { return leaky_relu(x, negative_slope); },
          {"LeakyReLU", {{"negative_slope", negative_slope}}}, Reach::element)) {
  check_number("LeakyReLU", "negative_slope", Allowed::not_negative("negative_slope"), negative_slope);
}
ELU::ELU(double alpha)
    : Module(layer_of(
          "elu",
          [alpha](const Tensor& x) { return alpha == 1 ? elu(x) : where(x > 0, x, alpha * expm1(minimum(x, 0))); },
          {"ELU", {{"alpha", alpha}}}, Reach::element)) {
  check_number("ELU", "alpha", Allowed::finite("alpha"), alpha);
}
PReLU::PReLU(std::vector<int> shared_axes) : Module(std::make_shared<PReLULayer>(std::move(shared_axes))) {}
Softmax::Softmax(int axis) : Module(std::make_shared<SoftmaxLayer>(axis)) {}

}  // namespace gradus
