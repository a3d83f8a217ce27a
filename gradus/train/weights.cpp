/// Everything is checked before the first variable is assigned.
#include "gradus/train/weights.h"
#include <map>
#include <string_view>
#include "gradus/base/floating_point_state.h"
#include "gradus/formats/safetensors.h"

namespace gradus {
namespace {

using Values = std::map<std::string, Tensor>;

/// `op` opens messages.
void assign_all(std::string_view op, const std::filesystem::path& file, const Values& values, const Module& module) {
  require(module.is_built(), op, ": module ", module.name(), " is not built; call it, or build(spec), first");
  const std::string where = text(op, ": ", file.string(), ": ");
  const Variables variables = module.variables();
  for (const Variable& variable : variables) {
    const auto found = values.find(variable.name());
    require(found != values.end(), where, "there is no array `", variable.name(), "`");
    const Spec& spec = found->second.spec();
    require(spec == Spec{variable.dtype(), variable.shape()}, where, '`', variable.name(), "`: expected ",
            variable.dtype(), ' ', variable.shape(), ", the file has ", spec.dtype, ' ', spec.shape);
  }
  require(values.size() == variables.size(), where, "it has ", values.size(), " arrays, the model ", variables.size(),
          " variables");
  for (Variable& variable : variables) variable.assign(values.at(variable.name()));
}

}  // namespace

void save_safetensors(const std::filesystem::path& file, const Module& module) {
  const HostFloats floats;
  std::vector<NamedArray> arrays;
  for (const Variable& variable : module.variables()) {
    const Tensor value = variable.value();
    arrays.push_back({variable.name(), value.spec(), Ref<Buffer>(&value.observed())});
  }
  write_safetensors(file, arrays);
}

void load_safetensors(const std::filesystem::path& file, Module& module) {
  const HostFloats floats;
  Values values;
  for (NamedArray& array : read_safetensors(file))
    values.emplace(array.name, Tensor::of_buffer(array.spec, std::move(array.data)));
  assign_all("load_safetensors", file, values, module);
}

void save_npz(const std::filesystem::path& file, const Module& module) {
  const HostFloats floats;
  NamedTensors arrays;
  for (const Variable& variable : module.variables()) arrays.emplace_back(variable.name(), variable.value());
  save_npz(file, arrays);
}

void load_npz(const std::filesystem::path& file, Module& module) {
  const HostFloats floats;
  Values values;
  for (auto& [name, value] : load_npz(file)) values.emplace(name, std::move(value));
  assign_all("load_npz", file, values, module);
}

}  // namespace gradus
