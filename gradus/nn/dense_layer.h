/// The layer behind Dense, for code that builds other layers from it.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus {

/// activation(x kernel + bias).
struct DenseLayer final : ClonedMasked<DenseLayer>, Described {
  DenseLayer(std::int64_t n, Activation a, DenseOptions o) : units(n), activation(std::move(a)), options(std::move(o)) {
    require(units > 0, "Dense: units must be positive, got ", units);
    if (options.dtype) set_policy({*options.dtype, *options.dtype});
    set_activity_regularizer(options.activity_regularizer);
  }
  std::string_view kind() const override { return "dense"; }
  LayerConfig config() const override {
    return {"Dense",
            {{"units", units},
             {"activation", activation},
             {"use_bias", options.use_bias},
             {"kernel_regularizer", options.kernel_regularizer},
             {"bias_regularizer", options.bias_regularizer},
             {"activity_regularizer", options.activity_regularizer}}};
  }
  void build(const Spec& input) override {
    require(input.shape.rank() >= 1 && input.shape.back() >= 0,
            "Dense: the last dimension of the input must be known, got ", input);
    require(is_floating(input.dtype), "Dense: the input is ", input,
            ", expected a floating type; cast it, for example "
            "with dataset.map");
    add_variable("kernel", cast(options.kernel_initializer({input.shape.back(), units}), input.dtype),
                 options.kernel_regularizer);
    if (options.use_bias)
      add_variable("bias", cast(options.bias_initializer({units}), input.dtype), options.bias_regularizer);
  }
  Tensor call(const Tensor& x) const override {
    const Tensor kernel = parameter(0);
    require(x.shape().back() == kernel.shape()[0], "Dense ", name(), ": the input is ", x.spec(),
            ", but its kernel is ", kernel.spec(), ": expected ", kernel.shape()[0], " in the last dimension");
    Tensor y = x.shape().rank() == 1 ? reshape(matmul(reshape(x, {1, -1}), kernel), {units}) : matmul(x, kernel);
    if (options.use_bias) y = y + parameter(1);
    return activation(y);
  }
  ChannelFlow channel_flow() const override {
    ChannelFlow flow{.kind = ChannelFlow::Kind::mixed, .axes = {{.inputs = 0, .outputs = 1}}, .activation = activation};
    if (!options.use_bias) return flow;
    flow.axes.push_back({.outputs = 0, .shifts = true});
    flow.shift = variable(1);
    return flow;
  }
  void set_output_channels(std::int64_t n) override { units = n; }
  std::int64_t units;
  Activation activation;
  DenseOptions options;
  using Layer::variable;
};

}  // namespace gradus
