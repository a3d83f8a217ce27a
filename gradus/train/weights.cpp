/// Everything is checked before the first variable is assigned.
#include "gradus/train/weights.h"
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include "gradus/base/floating_point_state.h"
#include "gradus/formats/placed_bytes.h"
#include "gradus/formats/safetensors.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/elementwise.h"
#include "gradus/train/keras_weights.h"
#include "gradus/train/model_texts.h"

namespace gradus {
namespace {

using Values = std::map<std::string, Tensor>;

/// "`a`, `b`, `c` and 4 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 5;
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) all += text(i > 0 ? ", `" : "`", names[i], '`');
  return names.size() > shown ? text(all, " and ", names.size() - shown, " more") : all;
}

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

/// By the names of the model; `given` keeps those of the file.
Values renamed(Values values, const Renaming& rename, const std::string& where,
               std::map<std::string, std::string>& given) {
  Values result;
  for (auto& [name, value] : values) {
    const std::string own = rename(name);
    const auto [at, is_new] = given.emplace(own, name);
    require(is_new, where, "rename: `", at->second, "` and `", name, "` would both be `", own, "`");
    result.emplace(own, std::move(value));
  }
  return result;
}

/// Reads the vocabularies among the values. A file without one, as older versions wrote, leaves the model its own.
void read_texts(LoadedTexts& texts, const Module& module, const Values& values,
                std::map<std::string, std::string>& names_in_file, LoadedWeights& told) {
  for (const ModelText& text : texts_of(module)) {
    const auto found = values.find(text.name);
    if (found == values.end()) continue;
    const Tensor& value = found->second;
    const std::string unlike = texts.read(text, {text.name, value.spec(), value.host_buffer()});
    if (unlike.empty()) told.loaded.push_back(text.name);
    else told.unlike.push_back(text.name + ": " + unlike);
    names_in_file.erase(text.name);
  }
}

/// `op` opens messages.
LoadedWeights assign_all(std::string_view op, const std::filesystem::path& file, NamedTensors arrays, Module& module,
                         const LoadWeightsOptions& options) {
  const std::string model = module.layer_behind().called();
  require(module.is_built(), op, ": module ", model, " is not built; call it, or build(spec), first");
  const std::string where = text(op, ": ", file.string(), ": ");
  std::map<std::string, std::string> names_in_file;
  const Values values = renamed({arrays.begin(), arrays.end()}, options.rename, where, names_in_file);
  const Variables variables = module.variables();
  LoadedWeights told;
  for (const Variable& variable : variables) {
    const auto found = values.find(variable.name());
    if (found == values.end()) {
      told.missing.push_back(variable.name());
      continue;
    }
    const Spec& spec = found->second.spec();
    if (spec.shape == variable.shape() && loads_into(spec.dtype, variable.dtype()))
      told.loaded.push_back(variable.name());
    else
      told.unlike.push_back(text(variable.name(), ": expected ", variable.dtype(), ' ', variable.shape(),
                                 ", the file has ", spec.dtype, ' ', spec.shape));
    names_in_file.erase(variable.name());
  }
  LoadedTexts texts(module, where);
  read_texts(texts, module, values, names_in_file, told);
  for (const auto& [own, name] : names_in_file)
    told.unmatched.push_back(own == name ? name : text(name, ", renamed to ", own));
  const bool is_alien =
      told.missing.size() == variables.size() && told.loaded.empty() && !values.empty() && variables.size() > 0;
  require(!is_alien, where, "none of its arrays has the name of a variable of ", model, ": it has ",
          some_of(told.unmatched), ", the model ", some_of(names_of(variables)),
          "; {.rename = {{\"name or prefix/ in the file\", \"in the model\"}}} gives them the model's names");
  require(!options.strict || told.is_complete(), where, "it does not match ", model, ':', told,
          "\n{.strict = false} loads the others, {.rename = ...} gives arrays other names");
  for (Variable& variable : variables) {
    const auto found = values.find(variable.name());
    if (found == values.end() || found->second.shape() != variable.shape() ||
        !loads_into(found->second.dtype(), variable.dtype()))
      continue;
    variable.assign(cast(found->second, variable.dtype()));
  }
  texts.take();
  return told;
}

NamedTensors arrays_of(const Module& module) {
  NamedTensors arrays;
  for (const Variable& variable : module.variables()) arrays.emplace_back(variable.name(), variable.value());
  for (const NamedArray& text : text_arrays(module))
    arrays.emplace_back(text.name, Tensor::of_buffer(text.spec, text.data));
  return arrays;
}

}  // namespace

Renaming::Renaming(std::map<std::string, std::string> names)
    : f_([names = std::move(names)](const std::string& name) {
        if (const auto exact = names.find(name); exact != names.end()) return exact->second;
        for (std::size_t size = name.size(); size > 0; --size) {
          if (name[size - 1] != '/' && name[size - 1] != '.') continue;
          if (const auto prefix = names.find(name.substr(0, size)); prefix != names.end())
            return prefix->second + name.substr(size);
        }
        return name;
      }) {}

std::ostream& operator<<(std::ostream& out, const LoadedWeights& weights) {
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    constexpr std::size_t shown = 20;
    for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) out << "\n  " << what << names[i];
    if (names.size() > shown) out << "\n  and " << names.size() - shown << " more";
  };
  list("", weights.unlike);
  list("there is no array ", weights.missing);
  list("no variable belongs to the array ", weights.unmatched);
  return weights.is_complete() ? out << "all of " << weights.loaded.size() << " variables" : out;
}

void save_safetensors(const std::filesystem::path& file, const Module& module) {
  const HostFloats floats;
  save_safetensors(file, arrays_of(module));
}

LoadedWeights load_safetensors(const std::filesystem::path& file, Module& module, LoadWeightsOptions options) {
  const HostFloats floats;
  return assign_all("load_safetensors", file, load_safetensors(file), module, options);
}

void load_vocabularies(const std::filesystem::path& file, Module& module) {
  const HostFloats floats;
  const PlacedBytes bytes = placed_bytes(file);
  std::array<std::byte, 2> first{};
  if (bytes.size >= first.size()) bytes.read(0, first);
  const bool is_archive = first == std::array{std::byte{'P'}, std::byte{'K'}};
  const NamedTensors arrays = is_archive ? load_npz(file) : load_safetensors(file);
  const std::string where = text("load_vocabularies: ", file.string(), ": ");
  LoadedTexts texts(module, where);
  LoadedWeights told;
  std::map<std::string, std::string> unused;
  read_texts(texts, module, {arrays.begin(), arrays.end()}, unused, told);
  const std::vector<ModelText> own = texts_of(module);
  const bool may_have_none =
      !own.empty() && std::ranges::all_of(own, [](const ModelText& each) { return each.text->may_be_absent(); });
  require(may_have_none || !told.loaded.empty() || !told.unlike.empty(), where, "it has no vocabulary of ",
          module.layer_behind().called());
  require(told.unlike.empty(), where, "it does not match ", module.layer_behind().called(), ':', told);
  texts.take();
}

void save_npz(const std::filesystem::path& file, const Module& module) {
  const HostFloats floats;
  save_npz(file, arrays_of(module));
}

LoadedWeights load_npz(const std::filesystem::path& file, Module& module, LoadWeightsOptions options) {
  const HostFloats floats;
  return assign_all("load_npz", file, load_npz(file), module, options);
}

}  // namespace gradus
