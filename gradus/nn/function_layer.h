/// Layers without variables that are one function of their input.
#pragma once
#include <functional>
#include "gradus/nn/cloned.h"

namespace gradus {

struct FunctionLayer final : Cloned<FunctionLayer> {
  FunctionLayer(std::string_view k, std::function<Tensor(const Tensor&)> g) : name_of_kind(k), f(std::move(g)) {}
  std::string_view kind() const override { return name_of_kind; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return f(x); }
  std::string_view name_of_kind;  // a literal
  std::function<Tensor(const Tensor&)> f;
};

inline std::shared_ptr<Layer> layer_of(std::string_view kind, std::function<Tensor(const Tensor&)> f) {
  return std::make_shared<FunctionLayer>(kind, std::move(f));
}

}  // namespace gradus
