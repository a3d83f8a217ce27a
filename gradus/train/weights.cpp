/// Everything is checked before the first variable is assigned.
#include "gradus/train/weights.h"
#include <map>
#include "gradus/formats/safetensors.h"

namespace gradus {

void save_safetensors(const std::filesystem::path& file, const Module& module) {
  std::vector<NamedArray> arrays;
  for (const Variable& variable : module.variables()) {
    const Tensor value = variable.value();
    arrays.push_back({variable.name(), value.spec(), Ref<Buffer>(&value.observed())});
  }
  write_safetensors(file, arrays);
}

void load_safetensors(const std::filesystem::path& file, Module& module) {
  require(module.is_built(), "load_safetensors: module ", module.name(),
          " is not built; call it, or build(spec), first");
  std::map<std::string, NamedArray> arrays;
  for (NamedArray& array : read_safetensors(file)) arrays.emplace(array.name, std::move(array));
  const Variables variables = module.variables();
  for (const Variable& variable : variables) {
    const auto found = arrays.find(variable.name());
    require(found != arrays.end(), "load_safetensors: ", file.string(), " has no array `", variable.name(), "`");
    const Spec wanted{variable.dtype(), variable.shape()};
    require(found->second.spec == wanted, "load_safetensors: ", file.string(), ": `", variable.name(), "` is ",
            found->second.spec, ", the model expects ", wanted);
  }
  require(arrays.size() == variables.size(), "load_safetensors: ", file.string(), " has ", arrays.size(),
          " arrays, the model ", variables.size(), " variables");
  for (Variable& variable : variables) {
    NamedArray& array = arrays.at(variable.name());
    variable.assign(Tensor::of_buffer(array.spec, std::move(array.data)));
  }
}

}  // namespace gradus
