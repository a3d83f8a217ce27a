/// Keras's config.json as layers: nested layers, policies, frozen layers, and the input.
#include <algorithm>
#include <map>
#include "gradus/formats/json.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/recurrent.h"
#include "gradus/train/keras_config.h"
#include "gradus/train/keras_graph.h"
#include "gradus/train/keras_layers.h"
#include "gradus/train/keras_options.h"

namespace gradus {
namespace {

using Json = nlohmann::json;

constexpr int deepest = 32;        // layers within layers
constexpr int most_layers = 1000;  // in all: the time to make them grows with the cube of their number
constexpr std::string_view as_model = "write it as a Model, whose weights load_weights reads";
constexpr std::string_view as_graph = "load_functional reads it";

class ConfigReader {
 public:
  explicit ConfigReader(const LoadModelOptions& options) : inference_only_(options.inference_only) {}

  ConfiguredModel model(const Json& written) {
    const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
    if (kind != "Sequential" && kind != "Functional") {
      problems_.push_back(text("the model is ", kind.is_null() ? "nothing" : shown(kind),
                               ", expected a Sequential or a Functional; ", as_model));
      return {};
    }
    const Json& config = config_of(written);
    if (kind == "Functional" && !is_chain(config)) return {};
    ConfiguredModel read{.model = sequential(config, 0)};
    read.input = input_of(written, config);
    read.frozen = std::move(frozen_);
    return read;
  }
  /// A Functional with any graph, or a Sequential as the only layer of one.
  ConfiguredGraph graph(const Json& written) {
    const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
    LayerGraph graph;
    if (kind == "Functional") {
      graph = functional(config_of(written), 0);
    } else if (kind == "Sequential") {
      const Json& config = config_of(written);
      const std::string name = name_in(config, "sequential");
      graph.layers.emplace_back(name, sequential(config, 0));
      graph.steps.push_back(
          {.run = [](const GraphLayer* model, In in) { return Tensors{std::get<Module>(*model)(in[0])}; },
           .layer = 0,
           .inputs = {0}});
      graph.input_names = {name_in_first(config, "input")};
      graph.input_specs = {input_of(written, config)};
      graph.output_names = {name};
      graph.outputs = {1};
    } else {
      problems_.push_back(text("the model is ", kind.is_null() ? "nothing" : shown(kind),
                               ", expected a Functional or a Sequential; ", as_model));
    }
    if (!problems_.empty()) return {};
    ConfiguredGraph read{.layer = std::make_shared<FunctionalLayer>(std::move(graph))};
    read.is_sequential = kind == "Sequential";
    read.frozen = std::move(frozen_);
    return read;
  }
  std::vector<std::string>& problems() { return problems_; }

 private:
  static std::string name_in_first(const Json& config, const std::string& otherwise) {
    const auto layers = config.find("layers");
    const bool any = layers != config.end() && layers->is_array() && !layers->empty() && (*layers)[0].is_object();
    return any ? name_in((*layers)[0].value("config", Json::object()), otherwise) : otherwise;
  }
  LayerGraph functional(const Json& config, int depth) {
    return graph_of_config(
        config, [&](const Json& written, bool causal) { return graph_layer(written, causal, depth + 1); },
        inference_only_, problems_);
  }
  std::optional<GraphLayer> graph_layer(const Json& written, bool causal, int depth) {
    const auto maker = [&](const std::string& class_name, const Json& config, KerasOptions& options,
                           const Policy& policy) -> std::optional<GraphLayer> {
      if (class_name == "SimpleRNN" || class_name == "GRU" || class_name == "LSTM") {
        options.flag("return_state", false);
        return keras_recurrent(class_name, options);
      }
      if (auto attention = keras_attention(class_name, options)) return *std::move(attention);
      if (class_name == "Attention" || class_name == "AdditiveAttention")
        return keras_dot_attention(class_name, options, causal);
      if (class_name == "Functional") return nested(config, options, depth);
      auto made = make(class_name, config, options, policy, depth);
      return made ? std::optional<GraphLayer>(*std::move(made)) : std::nullopt;
    };
    auto read = named<GraphLayer>("layer", written, depth, maker);
    if (!read) return {};
    std::visit(
        [&](auto& module) {
          if (!module.layer_behind().policy() && read->second != float32) module.set_policy(read->second);
        },
        read->first);
    return std::move(read->first);
  }
  std::optional<Functional> nested(const Json& config, KerasOptions& options, int depth) {
    for (const char* known : {"layers", "input_layers", "output_layers"}) options.raw(known);
    const std::size_t before = problems_.size();
    LayerGraph graph = functional(config, depth);
    if (problems_.size() > before) return {};
    return Functional(std::make_shared<FunctionalLayer>(std::move(graph)));
  }
  static Module& module_in(Module& module) { return module; }
  static RecurrentCell& module_in(RecurrentCell& cell) { return cell; }
  static Module& module_in(GraphLayer& layer) {
    return std::visit([](Module& module) -> Module& { return module; }, layer);
  }

  static std::string shown(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }
  const Json& config_of(const Json& written) {
    static const Json none = Json::object();
    const auto found = written.find("config");
    if (found != written.end() && found->is_object()) return *found;
    problems_.push_back("a layer without a config");
    return none;
  }
  static std::string name_in(const Json& config, const std::string& otherwise) {
    const auto name = config.find("name");
    return name != config.end() && name->is_string() ? name->get<std::string>() : otherwise;
  }

  /// True if each layer is called once, with the result of the one before it; else a problem names the layer.
  bool is_chain(const Json& config) {
    const auto layers = config.find("layers");
    if (layers == config.end() || !layers->is_array() || layers->empty()) {
      problems_.push_back("a Functional without layers");
      return false;
    }
    std::string before;
    for (std::size_t i = 0; i < layers->size(); ++i) {
      const Json& written = (*layers)[i];
      const std::string name = written.is_object() ? name_in(written, "") : "";
      const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
      const std::string wrong = i > 0                  ? wrong_input(written, before)
                                : kind == "InputLayer" ? ""
                                                       : "expected an InputLayer first";
      if (!wrong.empty()) {
        problems_.push_back(text(name, " (", kind.is_string() ? kind.get<std::string>() : "no class", "): ", wrong,
                                 ": this Functional is no chain of layers; ", as_graph));
        return false;
      }
      before = name;
    }
    const Json outputs = config.value("output_layers", Json());
    const Json last = Json::array({before, 0, 0});
    if (outputs == last || outputs == Json::array({last})) return true;
    problems_.push_back(
        text("the Functional gives ", shown(outputs), ", expected what its last layer ", before, " gives; ", as_graph));
    return false;
  }
  /// The reason why a layer of a Functional cannot stand after `before` in a chain; empty: it can.
  static std::string wrong_input(const Json& written, const std::string& before) {
    if (!written.is_object()) return "no layer";
    const Json calls = written.value("inbound_nodes", Json());
    if (!calls.is_array() || calls.size() != 1)
      return text("it is called ", calls.is_array() ? calls.size() : 0, " times");
    const Json& call = calls[0];
    const Json arguments = call.is_object() ? call.value("args", Json()) : Json();
    if (!arguments.is_array() || arguments.size() != 1 || !arguments[0].is_object()) return "it takes several inputs";
    const Json of = arguments[0].value("config", Json());
    const Json from = of.is_object() ? of.value("keras_history", Json()) : Json();
    if (from != Json::array({before, 0, 0})) return text("it takes ", shown(from), ", not what ", before, " gives");
    const Json options = call.value("kwargs", Json());
    for (const auto& [name, value] : options.items())
      if (!value.is_null() && value != false) return text("it is called with `", name, "` ", shown(value));
    return {};
  }

  /// One policy for all where all have one; else each its own.
  Sequential sequential(const Json& config, int depth) {
    std::vector<Module> layers;
    std::vector<Policy> policies;
    const auto listed = config.find("layers");
    if (listed == config.end() || !listed->is_array()) problems_.push_back("a Sequential without layers");
    else
      for (const Json& written : *listed) {
        if (written.is_object() && written.value("class_name", Json()) == "InputLayer") continue;
        if (auto read = layer(written, depth + 1)) {
          layers.push_back(std::move(read->first));
          policies.push_back(read->second);
        }
      }
    const bool one = std::ranges::all_of(policies, [&](const Policy& p) { return p == policies[0]; });
    for (std::size_t i = 0; i < layers.size() && !one; ++i)
      if (!layers[i].layer_behind().policy()) layers[i].set_policy(policies[i]);
    ModelOptions options{.policy = one && !policies.empty() ? policies[0] : float32};
    if (depth > 0) options.name = name_in(config, "");
    return Sequential(std::move(layers), options);
  }

  /// The result of `maker`, with its name, frozen if it says so; and its policy. `what`: a layer or a cell.
  template <class M, class Make>
  std::optional<std::pair<M, Policy>> named(const char* what, const Json& written, int depth, const Make& maker) {
    if (++count_ > most_layers) {
      if (count_ == most_layers + 1)
        problems_.push_back(text("it has more than ", most_layers,
                                 " layers and cells; make it in C++, and read its weights "
                                 "by load_weights"));
      return {};
    }
    const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
    if (!kind.is_string() || depth > deepest) {
      problems_.push_back(depth > deepest ? text(what, "s are nested too deeply")
                                          : text("a ", what, " without a class"));
      return {};
    }
    const Json& config = config_of(written);
    const std::string class_name = kind.get<std::string>(), name = name_in(config, class_name);
    KerasOptions options(config, name + " (" + class_name + ")", inference_only_, problems_);
    try {
      const Policy policy = options.policy();
      std::optional<M> made = maker(class_name, config, options, policy);
      if (!made) return {};
      options.finish();
      module_in(*made).set_name(name);
      if (!options.flag("trainable", true)) frozen_.push_back(&module_in(*made).layer_behind());
      return std::pair(std::move(*made), policy);
    } catch (const InvalidArgument& error) { options.problem(error.what()); }
    return {};
  }

  std::optional<std::pair<Module, Policy>> layer(const Json& written, int depth) {
    return named<Module>("layer", written, depth,
                         [&](const std::string& class_name, const Json& config, KerasOptions& options,
                             const Policy& policy) { return make(class_name, config, options, policy, depth); });
  }

  std::optional<Module> make(const std::string& class_name, const Json& config, KerasOptions& options,
                             const Policy& policy, int depth) {
    if (class_name == "Sequential") {
      for (const char* known : {"layers", "build_input_shape"}) options.raw(known);
      return sequential(config, depth);
    }
    if (class_name == "Bidirectional") return bidirectional(options, depth);
    if (class_name == "TimeDistributed") {
      auto inner = layer(options.raw("layer"), depth + 1);
      if (!inner) return {};
      return TimeDistributed(std::move(inner->first));
    }
    if (class_name == "RNN") return recurrent_network(options, policy, depth);
    const auto found = keras_layers().find(class_name);
    if (found != keras_layers().end()) return found->second(options);
    if (class_name == "Functional") {
      auto model = nested(config, options, depth);
      return model ? std::optional<Module>(*std::move(model)) : std::nullopt;
    }
    options.problem(class_name == "Lambda" ? "a Lambda is code of Python, which is not run; " + std::string(as_model)
                                           : "there is no such layer");
    return {};
  }

  std::optional<Module> recurrent_network(KerasOptions& options, const Policy& policy, int depth) {
    auto inner = cell(options.raw("cell"), policy, depth + 1);
    const RNNOptions made{.return_sequences = options.flag("return_sequences", false),
                          .go_backwards = options.flag("go_backwards", false),
                          .zero_output_for_mask = options.flag("zero_output_for_mask", false),
                          .activity_regularizer = options.regularizer("activity_regularizer")};
    if (!inner) return {};
    return RNN(std::move(*inner), made);
  }
  /// Its policy is `outer` unless it has one of its own.
  std::optional<RecurrentCell> cell(const Json& written, const Policy& outer, int depth) {
    auto read = named<RecurrentCell>(
        "cell", written, depth,
        [&](const std::string& class_name, const Json&, KerasOptions& options, const Policy& policy) {
          return class_name == "StackedRNNCells" ? stacked(options, policy, depth) : keras_cell(class_name, options);
        });
    if (!read) return {};
    if (read->second != outer) read->first.set_policy(read->second);
    return std::move(read->first);
  }
  std::optional<RecurrentCell> stacked(KerasOptions& options, const Policy& policy, int depth) {
    const Json& written = options.raw("cells");
    std::vector<RecurrentCell> cells;
    if (!written.is_array() || written.empty()) options.problem("option `cells`: expected a list of cells");
    else
      for (const Json& each : written)
        if (auto made = cell(each, policy, depth + 1)) cells.push_back(std::move(*made));
    if (cells.empty()) return {};
    return StackedRNNCells(std::move(cells));
  }

  std::optional<Module> bidirectional(KerasOptions& options, int depth) {
    const Json& written = options.raw("layer");
    auto inner = layer(written, depth + 1);
    const Json& other = options.raw("backward_layer");
    if (!other.is_null() && written.is_object() && mirrored(written) != plain(other))
      options.problem("option `backward_layer`: expected what `layer` is, the other way");
    const std::string mode = options.word("merge_mode", "concat");
    const std::map<std::string, Merge> modes{
        {"concat", Merge::concat}, {"sum", Merge::sum}, {"mul", Merge::mul}, {"ave", Merge::ave}};
    if (!modes.contains(mode)) options.problem("option `merge_mode` is ", mode, "; expected concat, sum, mul or ave");
    if (!inner || !modes.contains(mode)) return {};
    std::string name = inner->first.name();
    if (name.starts_with("forward_")) inner->first.set_name(name.substr(8));
    return Bidirectional(std::move(inner->first), {.merge_mode = modes.at(mode)});
  }
  /// The common part of two layers that are alike.
  Json plain(const Json& written) {
    Json config = config_of(written);
    for (const char* each : {"name", "seed", "dtype", "trainable", "zero_output_for_mask"}) config.erase(each);
    for (auto option = config.begin(); option != config.end();)
      option = option.key().ends_with("_initializer") ? config.erase(option) : std::next(option);
    return config;
  }
  Json mirrored(const Json& written) {
    Json config = plain(written);
    config["go_backwards"] = config.value("go_backwards", Json(false)) != true;
    return config;
  }

  Spec input_of(const Json& written, const Json& config) {
    Json shape, dtype;
    const auto layers = config.find("layers");
    const bool any = layers != config.end() && layers->is_array() && !layers->empty() && (*layers)[0].is_object();
    const Json first = any ? (*layers)[0].value("class_name", Json()) : Json();
    if (first == "InputLayer") {
      const Json& input = config_of((*layers)[0]);
      shape = input.value("batch_shape", Json());
      dtype = input.value("dtype", Json());
    } else {
      shape = config.value("build_input_shape", Json());
      const auto build = written.find("build_config");
      if (shape.is_null() && build != written.end() && build->is_object()) shape = build->value("input_shape", Json());
      if (first == "Embedding") dtype = "int32";
    }
    return keras_input_spec(shape, dtype, problems_);
  }

  bool inference_only_;
  std::vector<std::string> problems_;
  std::vector<Layer*> frozen_;
  int count_ = 0;  // of layers and cells so far
};

}  // namespace

namespace {

/// The model that `read` makes of a config; DataError with all problems.
template <class Read>
auto read_config(std::string_view json, const std::string& file, const LoadModelOptions& options, Read read) {
  const Json written = parse_json(json, file + ": config.json");
  ConfigReader reader(options);
  auto made = read(reader, written);
  std::string all;
  for (const std::string& problem : reader.problems()) all += "\n  " + problem;
  require<DataError>(all.empty(), file, ": this model cannot be made:", all);
  return made;
}

}  // namespace

ConfiguredModel model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options) {
  return read_config(json, file, options,
                     [](ConfigReader& reader, const Json& written) { return reader.model(written); });
}

ConfiguredGraph graph_model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options) {
  return read_config(json, file, options,
                     [](ConfigReader& reader, const Json& written) { return reader.graph(written); });
}

}  // namespace gradus
