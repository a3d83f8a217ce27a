/// Layers without variables that are one function of their input.
#pragma once
#include <functional>
#include "gradus/base/rooms.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"

namespace gradus {

/// The part of the input that an element of the result depends on: all of it, or the same element alone. In the latter
/// case a mask is passed on, and channels stay apart.
enum class Reach { all, element };

/// A layer that applies a function.
struct FunctionLayer final : Cloned<FunctionLayer>, Described {
  FunctionLayer(std::string_view k, std::function<Tensor(const Tensor&)> g, LayerConfig c, Reach r)
      : name_of_kind(k), f(std::move(g)), made_with(std::move(c)), reach(r) {}
  LayerConfig config() const override { return made_with; }
  std::string_view kind() const override { return name_of_kind; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return f(x); }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override {
    return reach == Reach::all ? Tensor() : mask;
  }
  ChannelFlow channel_flow() const override {
    if (reach != Reach::element) return {};
    return {.kind = ChannelFlow::Kind::apart, .activation = f};
  }
  std::string_view name_of_kind;  // a literal
  std::function<Tensor(const Tensor&)> f;
  LayerConfig made_with;
  Reach reach;
};

/// `config`: the class and options in Keras, if it has the layer.
inline std::shared_ptr<Layer> layer_of(std::string_view kind, std::function<Tensor(const Tensor&)> f,
                                       LayerConfig config = {}, Reach reach = Reach::all) {
  return std::make_shared<FunctionLayer>(kind, std::move(f), std::move(config), reach);
}

}  // namespace gradus
