/// The names are those by which Keras finds its objects: attributes, and within lists their classes, counted.
#include "gradus/train/keras_weights.h"
#include <algorithm>
#include <map>
#include <set>
#include "gradus/function/variable_cell.h"
#include "gradus/nn/assignment.h"
#include "gradus/nn/net_layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

class Places {
 public:
  /// A layer that is there twice has its first place.
  void add(const Layer& layer, const std::string& path) {
    if (!added_.insert(&layer).second) return;
    const std::string_view kind = layer.kind();
    const auto children = layer.children();
    const auto* net = dynamic_cast<const NetLayer*>(&layer);
    if (net && kind != "functional") add_net(*net, path);
    else if (kind == "sequential" || kind == "functional") add_list(children, path + "layers/");
    else if (kind == "rnn") add(*children[0], path + "cell/");
    else if (kind == "stacked_rnn_cells") add_list(children, path + "cells/");
    else if (kind == "bidirectional") {
      add(*children[0], path + "forward_layer/");
      add(*children[1], path + "backward_layer/");
    } else if (kind == "time_distributed") add(*children[0], path + "layer/");
    else if (kind == "custom_cell") add(*children[0], path);
    else if (kind == "multi_head_attention") add_attention(layer, path);
    else add_leaf(layer, path);
  }
  std::vector<KerasPlace> take() { return std::move(places_); }

 private:
  void add_list(const std::vector<std::shared_ptr<Layer>>& layers, const std::string& path) {
    std::map<std::string, int> seen;
    for (const auto& layer : layers) {
      const std::string name = class_of(*layer);
      add(*layer, path + numbered(name, seen[name]++) + "/");
    }
  }
  static std::string numbered(const std::string& name, int number) {
    return number ? name + "_" + std::to_string(number) : name;
  }

  /// Fields are attributes, which Keras visits by name; those within a struct are attributes of an object of that name.
  /// A keras.Model has an attribute `layers`, the list of them all, so what comes after it is found there, under the
  /// name of its class. What lies within a struct, where Keras sees nothing, keeps the name of its field.
  void add_net(const NetLayer& net, const std::string& path) {
    std::map<std::string, std::vector<const Variable*>> own;
    std::map<std::string, int> seen;
    net.visit({.layer =
                   [&](const std::string& field, const Module& module) {
                     const Layer& layer = module.layer_behind();
                     if (field.find('/') != std::string::npos)
                       return add(layer, (path.empty() && field > "layers" ? "layers/" : path) + field + "/");
                     const std::string name = class_of(layer);
                     const int number = seen[name]++;
                     if (!path.empty() || field < "layers") return add(layer, path + field + "/");
                     add(layer, "layers/" + numbered(name, number) + "/");
                   },
               .variable =
                   [&](const std::string& field, const Variable& variable) {
                     own[field.substr(0, field.rfind('/') + 1)].push_back(&variable);
                   }});
    for (auto& [object, variables] : own) {
      std::ranges::stable_partition(variables, [](const Variable* v) { return v->cell()->made_trainable; });
      int i = 0;
      for (const Variable* variable : variables) place(path + object + "vars/" + std::to_string(i++), *variable);
    }
  }
  /// As Keras spells a class in a path.
  static std::string class_of(const Layer& layer) {
    if (const auto* net = dynamic_cast<const NetLayer*>(&layer)) return in_snake_case(net->struct_name());
    if (layer.kind() == "custom_cell") return class_of(*layer.children()[0]);
    return is_grouped(layer) ? "grouped_query_attention" : std::string(layer.kind());
  }
  /// "(anonymous namespace)::ResBlock<8>" -> "res_block", as Keras does with the names of classes.
  static std::string in_snake_case(std::string name) {
    if (const std::size_t arguments = name.find('<'); arguments != std::string::npos) name.resize(arguments);
    name = name.substr(name.rfind(':') + 1);  // of npos + 1 on: all of it
    const auto is = [&](std::size_t at, char first, char last) {
      return at < name.size() && name[at] >= first && name[at] <= last;
    };
    const auto is_upper = [&](std::size_t at) { return is(at, 'A', 'Z'); };
    const auto is_lower = [&](std::size_t at) { return is(at, 'a', 'z'); };
    std::string result;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!is_upper(i) && !is_lower(i) && !is(i, '0', '9') && name[i] != '_') continue;
      const bool begins_word = is_upper(i) && (is_lower(i + 1) || is_lower(i - 1));
      if (i > 0 && begins_word) result += '_';
      result += is_upper(i) ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    }
    return result.empty() ? "model" : result;
  }
  static bool is_grouped(const Layer& layer) {
    if (layer.kind() != "multi_head_attention") return false;
    const Variables variables = layer.variables();
    const std::size_t key = variables.size() == 8 ? 2 : 1;
    return variables[0].shape()[1] != variables[key].shape()[1];  // heads of the query, of keys and values
  }

  void add_attention(const Layer& layer, const std::string& path) {
    const Variables variables = layer.variables();
    const bool biased = variables.size() == 8;
    const std::string parts = path + (is_grouped(layer) ? "_" : "");
    std::size_t next = 0;
    for (const char* part : {"query_dense", "key_dense", "value_dense", "output_dense"})
      for (int i = 0; i < (biased ? 2 : 1) && next < variables.size(); ++i)
        place(parts + part + "/vars/" + std::to_string(i), variables[next++]);
  }

  void add_leaf(const Layer& layer, const std::string& path) {
    std::set<const VariableCell*> within;
    for (const auto& child : layer.children())
      for (const Variable& variable : child->variables()) within.insert(variable.cell().get());
    const std::string_view kind = layer.kind();
    const bool has_cell = kind == "lstm" || kind == "gru" || kind == "simple_rnn" || kind.starts_with("conv_lstm");
    const std::string vars = path + (has_cell ? "cell/vars/" : "vars/");
    int i = 0;
    for (const Variable& variable : layer.variables())
      if (!within.contains(variable.cell().get())) place(vars + std::to_string(i++), variable);
    if (kind == "normalization") places_.push_back({vars + std::to_string(i)});  // how often it was adapted
    if (kind == "spectral_normalization") add(*layer.children()[0], path + "layer/");
    else add_list(layer.children(), path);
  }

  /// A variable that is in the model twice has one place, the first. What Keras could not name, keys of maps without
  /// a letter and fields that come to one name, is told apart.
  void place(std::string path, const Variable& variable) {
    if (!seen_.insert(variable.cell().get()).second) return;
    for (std::size_t at; (at = path.find("//")) != std::string::npos;) path.insert(at + 1, "_");
    while (!taken_.insert(path).second) path += "_1";
    places_.push_back({path, variable.cell()});
  }

  std::set<std::string> taken_;
  std::set<const VariableCell*> seen_;
  std::vector<KerasPlace> places_;
  std::set<const Layer*> added_;
};

Spec spec_of(const KerasPlace& place) {
  if (!place.variable) return {i32, {}};
  const Variable& variable = place.variable->handle;
  return {variable.dtype(), variable.shape()};
}

/// "layers/dense/": the part of a path that names an object of the model.
std::string top_of(const std::string& path) { return path.substr(0, path.find('/') + 1); }

}  // namespace

std::vector<KerasPlace> keras_places(const Layer& model, std::string_view op) {
  require(has_variables(model), op, ": module ", model.called(), " is not built; call it, or build(spec), first");
  Places places;
  places.add(model, "");
  return places.take();
}

std::vector<NamedArray> keras_arrays(const Module& model, std::string_view op) {
  std::vector<NamedArray> arrays;
  for (const KerasPlace& place : keras_places(model.layer_behind(), op)) {
    Tensor value = place.variable ? place.variable->handle.value() : constant(0);
    if (value.dtype() == bf16) value = cast(value, f32);
    arrays.push_back({place.path, value.spec(), value.host_buffer()});
  }
  return arrays;
}

void assign_keras_arrays(const Module& model, const std::vector<NamedArray>& arrays, std::string_view op,
                         const std::string& file) {
  const std::vector<KerasPlace> places = keras_places(model.layer_behind(), op);
  std::map<std::string, const NamedArray*> left;
  for (const NamedArray& array : arrays) left.emplace(array.name, &array);
  std::set<std::string> tops;
  std::string problems;
  std::vector<std::pair<VariableCell*, const NamedArray*>> found;
  for (const KerasPlace& place : places) {
    tops.insert(top_of(place.path));
    const auto at = left.find(place.path);
    if (at == left.end()) {
      if (place.variable)
        problems +=
            text("\n  there is no `", place.path, "`, for ", place.variable->handle.name(), ' ', spec_of(place));
      continue;
    }
    const Spec &has = at->second->spec, wanted = spec_of(place);
    if (place.variable && has.shape == wanted.shape && loads_into(has.dtype, wanted.dtype))
      found.emplace_back(place.variable.get(), at->second);
    else if (place.variable)
      problems +=
          text("\n  `", place.path, "` is ", has, "; expected ", wanted, " for ", place.variable->handle.name());
    left.erase(at);
  }
  for (const auto& [path, array] : left)
    if (tops.contains(top_of(path))) problems += text("\n  nothing of the model belongs to `", path, "` ", array->spec);
  require(problems.empty(), op, ": ", file, " has other weights than model ", model.layer_behind().called(), ':',
          problems);
  for (const auto& [cell, array] : found)
    cell->handle.assign(cast(Tensor::of_buffer(array->spec, array->data), cell->handle.dtype()));
}

}  // namespace gradus
