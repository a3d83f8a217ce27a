/// The formulas of the layers, and their variables.
#include "gradus/nn/layers.h"
#include <set>
#include "gradus/base/ranges.h"
#include "gradus/function/trace.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/dense_layer.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

struct FlattenLayer final : Cloned<FlattenLayer>, Described {
  std::string_view kind() const override { return "flatten"; }
  LayerConfig config() const override { return {"Flatten"}; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override {
    require(x.shape().rank() >= 1, "Flatten: expected a batch, got a scalar");
    std::int64_t rest = 1;
    for (int axis = 1; axis < x.shape().rank(); ++axis) rest = dimension::multiply(rest, x.shape()[axis]);
    return reshape(x, {x.shape()[0], rest});
  }
  ChannelFlow channel_flow() const override {
    return {.kind = ChannelFlow::Kind::apart, .places = input() ? places_of(input()->shape) : 1};
  }
};

struct DropoutLayer final : ClonedMasked<DropoutLayer>, Described {
  explicit DropoutLayer(double r) : rate(r) {
    check_number("Dropout", "the rate", Allowed::share_below_one("rate"), rate);
  }
  std::string_view kind() const override { return "dropout"; }
  LayerConfig config() const override { return {"Dropout", {{"rate", rate}}}; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override {
    warn_if_mode_unsaid("dropout");
    if (!is_training() || rate == 0) return x;
    const Tensor drawn = random::uniform(x.shape(), {.dtype = computed_in(x.dtype())});
    return where(drawn < rate, fill(x.shape(), 0, x.dtype()), x * (1 / (1 - rate)));
  }
  ChannelFlow channel_flow() const override { return {.kind = ChannelFlow::Kind::apart}; }
  double rate;
};

struct LambdaLayer final : Cloned<LambdaLayer> {
  explicit LambdaLayer(std::function<Tensor(const Tensor&)> g) : f(std::move(g)) {}
  std::string_view kind() const override { return "lambda"; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return f(x); }
  std::function<Tensor(const Tensor&)> f;
};

struct SequentialLayer final : Cloned<SequentialLayer>, Described {
  SequentialLayer() = default;
  SequentialLayer(const SequentialLayer& other)
      : Cloned<SequentialLayer>(other), Described(other), layers(other.layers) {}
  std::string_view kind() const override { return "sequential"; }
  LayerConfig config() const override { return {"Sequential"}; }
  bool casts_input() const override { return false; }

  void add(Module layer) {
    require(!is_built(),
            "Sequential: layers are added before it is built; a built one with another end is a new "
            "Sequential of a vector of its layers, layer(0) to layer(size() - 1), and the new ones");
    layers.push_back(std::move(layer));
    layers.back().settle();
    Layer& added = layers.back().layer_behind();
    if (!layers.back().is_settled() && !added.has_own_name()) added.rename(name_of(layers.size() - 1), false);
    pass_on(added);
  }
  /// Layers without a name of the user's are numbered by kind: dense, dense_1, dense_2.
  std::string name_of(std::size_t i) const {
    const Layer& layer = layers[i].layer_behind();
    if (layer.has_own_name()) return layer.name();
    std::set<const Layer*> same;
    for (std::size_t k = 0; k < i; ++k) {
      const Layer& other = layers[k].layer_behind();
      if (&other == &layer) return name_of(k);
      if (other.kind() == layer.kind() && !other.has_own_name()) same.insert(&other);
    }
    return std::string(layer.kind()) + (same.empty() ? "" : "_" + std::to_string(same.size()));
  }
  std::vector<std::shared_ptr<Layer>> children() const override {
    std::vector<std::shared_ptr<Layer>> all;
    for (const Module& layer : layers) all.push_back(child_of(layer));
    return all;
  }
  void add_parts_to(Structure& structure) const override {
    for (const Module& layer : layers) structure.add(layer);
  }
  bool become(Layer& fresh) override {
    auto* same = dynamic_cast<SequentialLayer*>(&fresh);
    if (!same) return false;
    if (layers.size() != same->layers.size()) layers = std::move(same->layers);
    else
      for (std::size_t i = 0; i < layers.size(); ++i) layers[i].exchange_layers(same->layers[i]);
    take_own(fresh);
    return true;
  }
  void build(const Spec& input) override {
    require(!layers.empty(), "Sequential: it has no layers");
    Spec spec = input;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Layer& layer = layers[i].layer_behind();
      layer.ensure_built(spec);
      if (i + 1 < layers.size()) spec = layer.output_of(spec);
    }
  }
  Tensor call(const Tensor& x) const override {
    Tensor y = x;
    for (const Module& layer : layers) y = layer.layer_behind().run(y);
    return y;
  }
  /// "dense/kernel"; what has a name, as one within another model has, puts that first.
  void name_variables() override {
    const std::string path = prefix() + (name().empty() ? "" : name() + "/");
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Layer& layer = layers[i].layer_behind();
      if (layers[i].is_settled()) layer.name_variables_as(path, name_of(i));
      else layer.set_prefix(path);
    }
  }
  mutable std::vector<Module> layers;
};

std::shared_ptr<Layer> sequential_of(std::vector<Module> layers, const ModelOptions& options) {
  auto made = std::make_shared<SequentialLayer>();
  for (Module& layer : layers) made->add(std::move(layer));
  made->rename(options.name, !options.name.empty());
  made->set_prefix("");
  if (options.policy.value() != float32) made->set_policy(options.policy.value());
  return made;
}

/// The activation from whichever of Dense's two places has one.
Activation the_one(Activation argument, DenseOptions& options) {
  const bool is_option = !options.activation.is(linear);
  require(!is_option || argument.is(linear), "Dense: two activations were given, the second argument and .activation");
  return is_option ? std::exchange(options.activation, linear) : std::move(argument);
}

const SequentialLayer& as_sequential(const Module& module) { return layer_as<SequentialLayer>(module, "Sequential"); }

}  // namespace

Dense::Dense(std::int64_t units, Activation activation, DenseOptions options)
    : Module(
          named(std::make_shared<DenseLayer>(units, the_one(std::move(activation), options), options), options.name)) {}
Dense::Dense(std::int64_t units, DenseOptions options) : Dense(units, linear, std::move(options)) {}

Variable& Dense::kernel() const {
  require(is_built(), "Dense: it has no kernel before it is built");
  return layer_as<DenseLayer>(*this, "Dense").variable(0);
}
Variable& Dense::bias() const {
  const auto& layer = layer_as<DenseLayer>(*this, "Dense");
  require(is_built() && layer.options.use_bias, "Dense: it has no bias", is_built() ? "" : " before it is built");
  return layer.variable(1);
}

Flatten::Flatten() : Module(std::make_shared<FlattenLayer>()) {}
Dropout::Dropout(double rate) : Module(std::make_shared<DropoutLayer>(rate)) {}
Lambda::Lambda(std::function<Tensor(const Tensor&)> f, std::string name)
    : Module(named(std::make_shared<LambdaLayer>(std::move(f)), name)) {}

Sequential::Sequential() : Module(sequential_of({}, {})) {}
Sequential::Sequential(std::initializer_list<Module> layers, ModelOptions options)
    : Module(sequential_of(std::vector<Module>(layers), options)) {}
Sequential::Sequential(std::vector<Module> layers, ModelOptions options)
    : Module(sequential_of(std::move(layers), options)) {}
void Sequential::add(Module layer) { layer_as<SequentialLayer>(*this, "Sequential").add(std::move(layer)); }
std::size_t Sequential::size() const {
  const SequentialLayer& all = as_sequential(*this);
  if (Trace* trace = Trace::current()) all.watch(*trace);
  return all.layers.size();
}
Module& Sequential::layer(std::size_t i) const {
  const SequentialLayer& all = as_sequential(*this);
  if (Trace* trace = Trace::current()) all.watch(*trace);  // which layer that is
  std::vector<Module>& layers = all.layers;
  require<OutOfRange>(i < layers.size(), "Sequential: layer ", i, " of ", layers.size());
  return layers[i];
}

}  // namespace gradus
