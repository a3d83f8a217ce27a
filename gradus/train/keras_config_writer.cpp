/// Layers as Keras's config.json.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include "gradus/function/variable_cell.h"
#include "gradus/nn/described.h"
#include "gradus/nn/layer.h"
#include "gradus/train/keras_config.h"

namespace gradus {
namespace {

using OrderedJson = nlohmann::ordered_json;

class ConfigWriter {
 public:
  /// The model as Keras serializes it; problems are kept.
  OrderedJson model(const Layer& layer) {
    const auto* described = dynamic_cast<const Described*>(&layer);
    if (!described || described->config().class_name != "Sequential") {
      problems_.push_back(text("the model is a ", layer.kind(), ", not a Sequential"));
      return {};
    }
    OrderedJson written = object(layer, *described);
    const OrderedJson shape = batch_shape(*layer.input());
    OrderedJson input{{"module", "keras.layers"},
                      {"class_name", "InputLayer"},
                      {"config",
                       {{"batch_shape", shape},
                        {"dtype", keras_name(layer.input()->dtype)},
                        {"sparse", false},
                        {"ragged", false},
                        {"name", "input_layer"}}},
                      {"registered_name", nullptr}};
    OrderedJson& layers = written["config"]["layers"];
    layers.insert(layers.begin(), std::move(input));
    written["config"]["build_input_shape"] = shape;
    written["build_config"] = {{"input_shape", shape}};
    return written;
  }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  OrderedJson object(const Layer& layer, const Described& described) {
    const LayerConfig config = described.config();
    OrderedJson options{{"name", name_of(layer)}, {"dtype", policy_name(layer)}};
    if (!is_trained(layer)) options["trainable"] = false;  // not every layer takes it
    for (const LayerOption& option : config.options) {
      const auto* regularizer = std::get_if<Regularizer>(&option.value);
      if (!regularizer || *regularizer) options[option.name] = value_of(layer, option);
    }
    add_children(options, layer, config.class_name);
    return {{"module", config.class_name == "Sequential" ? "keras" : "keras.layers"},
            {"class_name", config.class_name},
            {"config", std::move(options)},
            {"registered_name", nullptr}};
  }

  void add_children(OrderedJson& options, const Layer& layer, const std::string& class_name) {
    const auto children = layer.children();
    if (class_name == "Sequential") {
      OrderedJson& layers = options["layers"] = OrderedJson::array();
      std::set<std::string> names;
      std::set<const Layer*> seen;
      for (const auto& child : children) names.insert(child->name());
      for (const auto& child : children) name_by_kind(*child, names);
      names.clear();
      for (const auto& child : children) {
        layers.push_back(any(*child));
        if (!seen.insert(child.get()).second)
          problem(*child, "it is there twice: a Sequential of Keras has no layer so");
        else if (!names.insert(name_of(*child)).second || name_of(*child).find('/') != std::string::npos)
          problem(*child, "its name is taken, or has a slash: Keras allows neither");
      }
    } else if (class_name == "Bidirectional") {
      options["layer"] = any(*children[0]);
      options["backward_layer"] = any(*children[1]);
    } else if (class_name == "TimeDistributed") {
      options["layer"] = any(*children[0]);
    } else if (class_name == "RNN") {
      options["cell"] = any(*children[0]);
    } else if (class_name == "StackedRNNCells") {
      OrderedJson& cells = options["cells"] = OrderedJson::array();
      for (const auto& child : children) cells.push_back(any(*child));
    }
  }

  /// For a layer that is shared, and has no name of its own: "dense", "dense_1", whichever is not `taken`.
  void name_by_kind(const Layer& layer, std::set<std::string>& taken) {
    if (!layer.name().empty() || given_.contains(&layer)) return;
    const std::string kind(layer.kind());
    std::string name = kind;
    for (int i = 1; !taken.insert(name).second; ++i) name = text(kind, '_', i);
    given_[&layer] = name;
  }
  std::string name_of(const Layer& layer) const {
    const auto given = given_.find(&layer);
    if (given != given_.end()) return given->second;
    return layer.name().empty() ? std::string(layer.kind()) : layer.name();
  }

  OrderedJson any(const Layer& layer) {
    const auto* described = dynamic_cast<const Described*>(&layer);
    if (described && !described->config().class_name.empty()) return object(layer, *described);
    problem(layer, text("Keras has no layer like this ", layer.kind()));
    return {};
  }

  OrderedJson value_of(const Layer& layer, const LayerOption& option) {
    return std::visit(
        [&]<class T>(const T& value) -> OrderedJson {
          if constexpr (std::same_as<T, std::monostate>) return nullptr;
          else if constexpr (std::same_as<T, Activation>) return activation(layer, option.name, value);
          else if constexpr (std::same_as<T, Regularizer>) return penalty(layer, option.name, value);
          else if constexpr (std::same_as<T, OpenSizes>) return open_sizes(value.sizes);
          else return value;
        },
        option.value);
  }
  static OrderedJson open_sizes(std::span<const std::int64_t> sizes) {
    OrderedJson all = OrderedJson::array();
    for (const std::int64_t size : sizes) all.push_back(size < 0 ? OrderedJson(nullptr) : OrderedJson(size));
    return all;
  }
  OrderedJson activation(const Layer& layer, const std::string& option, const Activation& activation) {
    const auto name = gradus::name_of(activation);
    if (name) return *name;
    problem(layer, text("its ", option, " is none of Keras's"));
    return nullptr;
  }

  OrderedJson penalty(const Layer& layer, const std::string& option, const Regularizer& regularizer) {
    if (const auto factors = factors_of(regularizer))
      return {{"module", "keras.regularizers"},
              {"class_name", "L1L2"},
              {"config", {{"l1", factors->l1}, {"l2", factors->l2}}},
              {"registered_name", nullptr}};
    problem(layer, text("its ", option, " is neither L1 nor L2"));
    return nullptr;
  }

  OrderedJson policy_name(const Layer& layer) {
    const DType input = layer.input() && is_floating(layer.input()->dtype) ? layer.input()->dtype : f32;
    const Policy policy = layer.policy().value_or(Policy{input, input});
    if (policy.compute == policy.variable) return keras_name(policy.compute);
    if (policy.variable == f32 && is_narrow(policy.compute)) return std::string("mixed_") + keras_name(policy.compute);
    problem(layer,
            text("it computes in ", policy.compute, " and keeps ", policy.variable, ", for which Keras has no policy"));
    return nullptr;
  }
  /// False if a layer, or each of its variables made for training, was frozen.
  static bool is_trained(const Layer& layer) {
    const Variables variables = layer.variables();
    if (variables.size() == 0 || layer.kind() == "normalization") return true;
    if (!layer.is_trainable()) return false;
    bool is_any = false;
    for (const Variable& variable : variables) {
      if (variable.trainable()) return true;
      is_any = is_any || variable.cell()->made_trainable;
    }
    return !is_any;
  }

  OrderedJson batch_shape(const Spec& input) const {
    OrderedJson shape = open_sizes({input.shape.begin(), input.shape.end()});
    if (!shape.empty()) shape[0] = nullptr;  // a batch is of any size
    return shape;
  }
  static std::string keras_name(DType t) {
    const std::string name(gradus::name_of(t));
    if (t == boolean) return name;
    if (t == bf16) return "bfloat16";
    return (name[0] == 'f' ? "float" : name[0] == 'i' ? "int" : "uint") + name.substr(1);
  }
  void problem(const Layer& layer, const std::string& what) { problems_.push_back(name_of(layer) + ": " + what); }

  std::vector<std::string> problems_;
  std::map<const Layer*, std::string> given_;
};

}  // namespace

std::string config_of_model(const Module& model) {
  require(model.is_built(), "save_model: module ", model.layer_behind().called(),
          " is not built; call it, or build(spec), first");
  ConfigWriter writer;
  const OrderedJson written = writer.model(model.layer_behind());
  std::string all;
  for (const std::string& problem : writer.problems()) all += "\n  " + problem;
  require(all.empty(), "save_model: Keras could not make this model:", all,
          "\nsave_weights writes the weights alone; save_safetensors takes any model");
  return written.dump();
}

}  // namespace gradus
