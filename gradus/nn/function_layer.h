/// Layers without variables that are one function of their input.
#pragma once
#include <functional>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"

namespace gradus {

/// What becomes of the mask of the input.
enum class MaskOf { dropped, handed_on };

struct FunctionLayer final : Cloned<FunctionLayer>, Described {
  FunctionLayer(std::string_view k, std::function<Tensor(const Tensor&)> g, LayerConfig c, MaskOf m)
      : name_of_kind(k), f(std::move(g)), made_with(std::move(c)), mask_of_input(m) {}
  LayerConfig config() const override { return made_with; }
  std::string_view kind() const override { return name_of_kind; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return f(x); }
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override {
    return mask_of_input == MaskOf::handed_on ? mask : Tensor();
  }
  std::string_view name_of_kind;  // a literal
  std::function<Tensor(const Tensor&)> f;
  LayerConfig made_with;
  MaskOf mask_of_input;
};

/// `config`: what Keras would make it with, if it can.
inline std::shared_ptr<Layer> layer_of(std::string_view kind, std::function<Tensor(const Tensor&)> f,
                                       LayerConfig config = {}, MaskOf mask = MaskOf::dropped) {
  return std::make_shared<FunctionLayer>(kind, std::move(f), std::move(config), mask);
}

}  // namespace gradus
