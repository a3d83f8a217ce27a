/// What Keras computes for models of layers, stored by tests/nn/keras/make_values.py.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include "gradus/formats/safetensors.h"
#include "gradus/nn/module.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// The arrays of one case, without its name: "x", "w0" ...
class KerasValues {
 public:
  explicit KerasValues(const std::string& name) : name_(name) {
    for (const NamedArray& array : read_safetensors(std::filesystem::path(GRADUS_KERAS_FOLDER) / "values.safetensors"))
      if (array.name.starts_with(name + "/"))
        arrays_.emplace(array.name.substr(name.size() + 1), Tensor::of_buffer(array.spec, array.data));
    require(!arrays_.empty(), "no stored values of ", name);
  }
  const Tensor& operator[](const std::string& key) const {
    const auto found = arrays_.find(key);
    require(found != arrays_.end(), name_, ": nothing is stored as ", key);
    return found->second;
  }
  bool has(const std::string& key) const { return arrays_.contains(key); }
  /// Floats in `t`, others as they are.
  Tensor in(DType t, const std::string& key) const {
    const Tensor& x = (*this)[key];
    return is_floating(x.dtype()) ? cast(x, t) : x;
  }
  /// Builds the model in `t`, with the stored weights.
  void build(Module& model, DType t) const {
    model.set_policy({t, t});
    Spec input = in(t, "x").spec();
    input.shape.set(0, any_size);
    model.build(input);
    const Variables variables = model.variables();
    require(!has("w" + std::to_string(variables.size())), name_, ": the model has fewer variables than Keras's");
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(in(t, "w" + std::to_string(i)));
  }

 private:
  std::string name_;
  std::map<std::string, Tensor> arrays_;
};

}  // namespace gradus
