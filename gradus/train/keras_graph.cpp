/// Calls are made into steps as soon as all tensors that they take are known, as Keras does when it reads a config.
#include "gradus/train/keras_graph.h"
#include <algorithm>
#include <map>
#include <set>
#include "gradus/base/numbered.h"
#include "gradus/nn/merging.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/train/keras_ops.h"

namespace gradus {
namespace keras_graph {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_calls = 5000, most_layers = 1000, most_constants = std::size_t{1} << 20;
constexpr int deepest_list = 16;

/// The member of that name; null if there is none.
const Json& part(const Json& of, const char* name) {
  static const Json none;
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found == of.end() ? none : *found;
}
std::string word(const Json& of, const char* name) {
  const Json& found = part(of, name);
  return found.is_string() ? found.get<std::string>() : "";
}

/// Arguments of a call, and the tensors among them.
struct Call {
  std::vector<KerasArgument> arguments;
  std::map<std::string, KerasArgument> named;
  std::vector<int> inputs;  // values of the graph
  bool is_given(const std::string& name) const {
    const auto found = named.find(name);
    if (found == named.end()) return false;
    const KerasArgument& argument = found->second;
    return argument.is_tensor() || !argument.list.empty() || !is_nothing(argument.value);
  }
  /// null, false, and lists of null, as the masks of several inputs without one are written.
  static bool is_nothing(const Json& value) {
    if (value.is_array()) return std::ranges::all_of(value, [](const Json& each) { return each.is_null(); });
    return value.is_null() || value == false;
  }
};

// ---------------------------------------------------------------- calls of layers

using Run = std::function<Tensors(const GraphLayer*, In)>;

/// Reads the arguments of one call; each that was not taken is a problem.
class Taking {
 public:
  Taking(const Call& call, std::string layer, std::vector<std::string>& problems)
      : call_(call), layer_(std::move(layer)), problems_(problems) {
    for (const KerasArgument& argument : call.arguments) {
      if (argument.is_tensor()) given_.push_back(argument.input);
      else if (!argument.list.empty())
        for (const KerasArgument& each : argument.list) given_.push_back(each.input);
      else if (!argument.value.is_null()) problem("it is called with ", short_form(argument.value));
    }
    if (std::ranges::any_of(given_, [](int input) { return input < 0; })) problem("it takes a list within a list");
  }
  /// Tensors by place, also those of lists.
  const std::vector<int>& given() const { return given_; }
  /// A tensor by name; -1 if there is none.
  int tensor(const std::string& name) {
    taken_.insert(name);
    const auto found = call_.named.find(name);
    if (found == call_.named.end()) return -1;
    if (!found->second.is_tensor() && call_.is_given(name)) problem("`", name, "` is no tensor");
    return found->second.input;
  }
  /// Tensors of a list by name.
  std::vector<int> tensors(const std::string& name) {
    taken_.insert(name);
    std::vector<int> all;
    const auto found = call_.named.find(name);
    if (found == call_.named.end()) return all;
    if (found->second.is_tensor()) return {found->second.input};
    for (const KerasArgument& each : found->second.list) all.push_back(each.input);
    if (std::ranges::any_of(all, [](int input) { return input < 0; })) problem("`", name, "` has a list within");
    return all;
  }
  std::optional<bool> flag(const std::string& name) {
    taken_.insert(name);
    const auto found = call_.named.find(name);
    if (found == call_.named.end() || found->second.value.is_null()) return {};
    if (found->second.value.is_boolean()) return found->second.value.get<bool>();
    problem("it is called with `", name, "` ", short_form(found->second.value));
    return {};
  }
  /// Layers take masks from their inputs here.
  void no_mask() {
    taken_.insert("mask");
    if (call_.is_given("mask")) problem("it is called with a mask of its own, which is not known");
  }
  void finish() {
    for (const auto& each : call_.named)
      if (!taken_.contains(each.first) && call_.is_given(each.first))
        problem("it is called with `", each.first, "`, which is not known");
  }
  template <class... Parts> void problem(const Parts&... parts) { problems_.push_back(text(layer_, ": ", parts...)); }

 private:
  const Call& call_;
  std::string layer_;
  std::vector<std::string>& problems_;
  std::vector<int> given_;
  std::set<std::string> taken_;
};

/// `run` in the mode that the call names, if it names one.
Run in_mode(std::optional<bool> training, Run run) {
  if (!training) return run;
  const CallMode mode = *training ? CallMode::training : CallMode::inference;
  return [mode, run = std::move(run)](const GraphLayer* layer, In in) {
    const ModeScope scope(mode);
    return run(layer, in);
  };
}

std::optional<Run> call_of(Taking& taking, const Module&) {
  taking.no_mask();
  if (taking.given().size() != 1) {
    taking.problem("it takes ", taking.given().size(), " inputs, expected one");
    return {};
  }
  return [](const GraphLayer* layer, In in) { return Tensors{std::get<Module>(*layer)(in[0])}; };
}

std::optional<Run> call_of(Taking& taking, const RecurrentModule&, int states, bool with_state) {
  const int mask = taking.tensor("mask");
  std::vector<int> initial = taking.tensors("initial_state");
  std::vector<int> given = taking.given();
  if (given.size() > 1 && initial.empty()) initial.assign(given.begin() + 1, given.end()), given.resize(1);
  if (given.size() != 1 || (!initial.empty() && static_cast<int>(initial.size()) != states)) {
    taking.problem("it takes ", given.size(), " inputs and ", initial.size(), " states, expected one and ", states);
    return {};
  }
  return [=, x = given[0]](const GraphLayer* layer, In in) {
    RecurrentInput input;
    if (mask >= 0) input.mask = in[at(mask)];
    for (const int state : initial) input.initial_state.push_back(in[at(state)]);
    const auto& recurrent = std::get<RecurrentModule>(*layer);
    if (!with_state) return Tensors{recurrent(in[at(x)], input)};
    RecurrentOutput out = recurrent.with_state(in[at(x)], input);
    Tensors all{out.output};
    std::ranges::move(out.state, std::back_inserter(all));
    return all;
  };
}

std::optional<Run> call_of(Taking& taking, const MultiHeadAttention&) {
  const std::vector<int>& given = taking.given();
  const int named_value = taking.tensor("value"), named_key = taking.tensor("key"),
            mask = taking.tensor("attention_mask");
  const bool causal = taking.flag("use_causal_mask").value_or(false);
  const int query = given.empty() ? taking.tensor("query") : given[0];
  const int value = given.size() > 1 ? given[1] : named_value;
  const int key = given.size() > 2 ? given[2] : named_key >= 0 ? named_key : value;
  if (query < 0 || value < 0 || given.size() > 3) {
    taking.problem("expected a query and a value");
    return {};
  }
  return [=](const GraphLayer* layer, In in) {
    const Tensor &q = in[at(query)], &k = in[at(key)], &v = in[at(value)];
    Tensor seen;  // Keras: [batch, queries, keys], or with the heads
    if (mask >= 0) {
      const Tensor given_mask = cast(in[at(mask)], boolean);
      seen = given_mask.shape().rank() == 3 ? expand_dims(given_mask, 1) : given_mask;
    }
    if (causal) {
      const Tensor before = expand_dims(range(q.shape()[1]), 1) >= range(k.shape()[1]);
      seen = seen.defined() ? logical_and(seen, before) : before;
    }
    return Tensors{std::get<MultiHeadAttention>(*layer)(q, k, v, {.mask = seen})};
  };
}

std::optional<Run> call_of(Taking& taking, const AttentionModule&) {
  const std::vector<int> given = taking.given();
  taking.flag("use_causal_mask");  // an option of the layer
  taking.no_mask();
  if (given.size() < 2 || given.size() > 3) {
    taking.problem("it takes ", given.size(), " inputs, expected query, value and perhaps key");
    return {};
  }
  return [=](const GraphLayer* layer, In in) {
    const auto& attention = std::get<AttentionModule>(*layer);
    const Tensor &q = in[at(given[0])], &v = in[at(given[1])];
    return Tensors{given.size() == 2 ? attention(q, v) : attention(q, v, in[at(given[2])])};
  };
}

std::optional<Run> call_of(Taking& taking, const Functional& model) {
  taking.no_mask();
  const std::vector<int> given = taking.given();
  if (given.size() != model.input_names().size()) {
    taking.problem("it takes ", given.size(), " inputs, expected ", model.input_names().size());
    return {};
  }
  return [=](const GraphLayer* layer, In in) {
    Tensors inputs;
    for (const int each : given) inputs.push_back(in[at(each)]);
    return std::get<Functional>(*layer)(inputs);
  };
}

// ---------------------------------------------------------------- merging layers

using Merging = Tensor (*)(const std::vector<Tensor>&);

/// The layer of keras.layers that merges its inputs; empty for another class.
std::optional<std::function<Tensor(const Tensors&)>> merging(const std::string& class_name, KerasOptions& options) {
  static const std::map<std::string, Merging> known{{"Add", merging::add},           {"Subtract", merging::subtract},
                                                    {"Multiply", merging::multiply}, {"Average", merging::average},
                                                    {"Maximum", merging::maximum},   {"Minimum", merging::minimum}};
  if (const auto found = known.find(class_name); found != known.end()) return found->second;
  if (class_name == "Concatenate")
    return [layer = Concatenate{options.axis("axis", -1)}](const Tensors& in) { return layer(in); };
  if (class_name != "Dot") return {};
  std::vector<int> axes = options.axes("axes", {-1});
  if (axes.size() == 1) axes.push_back(axes[0]);
  if (axes.size() != 2) options.problem("option `axes`: expected one axis, or one for each input");
  axes.resize(2);
  const Dot dot{.axes = {axes[0], axes[1]}, .normalize = options.flag("normalize", false)};
  return [dot](const Tensors& in) {
    require(in.size() == 2, "Dot: ", in.size(), " inputs, expected two");
    return dot(in[0], in[1]);
  };
}

// ---------------------------------------------------------------- the graph

class GraphReader {
 public:
  GraphReader(const Json& config, const MakeGraphLayer& make, bool inference_only, std::vector<std::string>& problems)
      : make_(make), inference_only_(inference_only), problems_(problems) {
    const Json* layers = list(config, "layers");
    if (!layers) {
      fail("a Functional without layers");
      return;
    }
    if (layers->size() > most_layers) {
      fail(text("a Functional of more than ", most_layers, " layers; make it in C++, and read its weights by ",
                "load_weights"));
      return;
    }
    read_inputs(part(config, "input_layers"), *layers);
    for (const Json& written : *layers) enter(written);
    if (!problems_.empty()) return;
    make_steps();
    if (problems_.empty()) read_outputs(part(config, "output_layers"));
  }
  LayerGraph take() { return std::move(graph_); }

 private:
  struct Node {
    const Json* call;
    std::string layer;
    int number;
    bool is_made = false;
  };
  struct Known {
    const Json* written;
    std::string called;  // "name (Class)"
    int layer = -1;      // index into graph_.layers
    int results = 1;
    bool is_made = false;
  };

  static const Json* list(const Json& of, const char* name) {
    if (!of.is_object()) return nullptr;
    const auto found = of.find(name);
    return found != of.end() && found->is_array() && !found->empty() ? &*found : nullptr;
  }
  void fail(std::string problem) { problems_.push_back(std::move(problem)); }

  static std::string name_of(const Json& written) {
    const std::string name = word(written, "name");
    return name.empty() ? word(part(written, "config"), "name") : name;
  }

  /// [name, node, tensor] within a list, a list of them, or an object of them: in Keras's order, with their names.
  std::vector<std::pair<std::string, Json>> places(const Json& written) {
    std::vector<std::pair<std::string, Json>> all;
    const auto is_place = [](const Json& it) { return it.is_array() && it.size() == 3 && it[0].is_string(); };
    if (is_place(written)) return {{written[0].get<std::string>(), written}};
    for (const auto& [key, value] : written.items()) {
      if (is_place(value)) {
        all.emplace_back(written.is_object() ? key : value[0].get<std::string>(), value);
      } else if (value.is_array() && std::ranges::all_of(value, is_place)) {
        for (const Json& each : value) all.emplace_back(each[0].get<std::string>(), each);
      } else {
        fail(text("inputs or outputs are ", short_form(value), "; expected [layer, node, tensor]"));
        return {};
      }
    }
    return all;
  }

  void read_inputs(const Json& written, const Json& layers) {
    std::map<std::string, const Json*> inputs;
    for (const Json& layer : layers)
      if (word(layer, "class_name") == "InputLayer") inputs.emplace(name_of(layer), &layer);
    for (const auto& [name, place] : places(written)) {
      const std::string layer = place[0].get<std::string>();
      const auto found = inputs.find(layer);
      if (found == inputs.end()) return fail(text("input ", layer, " has no InputLayer"));
      const Json& config = part(*found->second, "config");
      if (!values_.emplace(key(layer, 0, 0), static_cast<int>(graph_.input_names.size())).second)
        return fail(text("input ", layer, " occurs twice"));
      graph_.input_names.push_back(name);
      graph_.input_specs.push_back(keras_input_spec(part(config, "batch_shape"), part(config, "dtype"), problems_));
    }
    if (graph_.input_names.empty()) fail("a Functional without inputs");
    next_value_ = static_cast<int>(graph_.input_names.size());
  }

  void enter(const Json& written) {
    const std::string name = name_of(written), kind = word(written, "class_name");
    if (name.empty() || kind.empty()) return fail("a layer without a name or a class");
    if (kind == "InputLayer") return;
    if (!known_.emplace(name, Known{&written, name + " (" + kind + ")"}).second)
      return fail(text("two layers have the name ", name));
    const Json* calls = list(written, "inbound_nodes");
    if (!calls) return fail(text(known_.at(name).called, ": it is never called"));
    for (std::size_t i = 0; i < calls->size(); ++i) nodes_.push_back({&(*calls)[i], name, static_cast<int>(i)});
    if (nodes_.size() > most_calls && !is_too_large_) {
      is_too_large_ = true;
      fail(text("a Functional of more than ", most_calls, " calls"));
    }
  }

  void make_steps() {
    for (std::size_t left = nodes_.size(), before = left + 1; left > 0 && left < before && problems_.empty();) {
      before = left;
      for (Node& node : nodes_)
        if (!node.is_made && make_step(node)) --left;
    }
    const auto stuck = std::ranges::find_if_not(nodes_, &Node::is_made);
    if (stuck != nodes_.end() && problems_.empty())
      fail(text(known_.at(stuck->layer).called, ": it takes a tensor that no layer gives"));
  }

  /// False while a tensor that the call takes is not known.
  bool make_step(Node& node) {
    Known& of = known_.at(node.layer);
    const Json &arguments = part(*node.call, "args"), &named = part(*node.call, "kwargs");
    if (!are_known(arguments) || !are_known(named)) return false;
    node.is_made = true;
    Call call;
    for (const auto& [place, value] : arguments.items()) call.arguments.push_back(argument(value, call, of.called, 0));
    for (const auto& [name, value] : named.items()) call.named.emplace(name, argument(value, call, of.called, 0));
    GraphStep step = step_of(of, call);
    step.inputs = std::move(call.inputs);
    for (int i = 0; i < step.results; ++i) values_.emplace(key(node.layer, node.number, i), next_value_ + i);
    next_value_ += step.results;
    graph_.steps.push_back(std::move(step));
    return true;
  }

  static std::string key(const std::string& layer, std::int64_t node, std::int64_t tensor) {
    return text(node, ' ', tensor, ' ', layer);
  }
  static std::optional<std::string> key_of(const Json& place) {
    const bool fits = place.is_array() && place.size() == 3 && place[0].is_string() && place[1].is_number_integer() &&
                      place[2].is_number_integer();
    if (!fits) return {};
    return key(place[0].get<std::string>(), place[1].get<std::int64_t>(), place[2].get<std::int64_t>());
  }

  /// The value that a tensor of a config stands for; null if it is not known yet.
  const int* value_of(const Json& tensor) const {
    const auto place = key_of(part(part(tensor, "config"), "keras_history"));
    const auto found = place ? values_.find(*place) : values_.end();
    return found == values_.end() ? nullptr : &found->second;
  }
  static bool is_tensor(const Json& written) { return word(written, "class_name") == "__keras_tensor__"; }
  bool are_known(const Json& written, int depth = 0) const {
    if (is_tensor(written)) return value_of(written) != nullptr;
    return depth > deepest_list || !written.is_structured() ||
           std::ranges::all_of(written, [&](const Json& each) { return are_known(each, depth + 1); });
  }

  KerasArgument argument(const Json& written, Call& call, const std::string& called, int depth) {
    const std::string kind = word(written, "class_name");
    if (is_tensor(written)) {
      const int* value = value_of(written);
      if (!value) return {};  // beneath the deepest list
      call.inputs.push_back(*value);
      return {.input = static_cast<int>(call.inputs.size()) - 1};
    }
    if (kind == "__tensor__" || kind == "__numpy__") return constant_argument(part(written, "config"), call, called);
    if (!written.is_array() || depth > deepest_list) return {.value = written};
    KerasArgument all{.value = written};
    bool any = false;
    for (const Json& each : written) {
      all.list.push_back(argument(each, call, called, depth + 1));
      any = any || all.list.back().is_tensor() || !all.list.back().list.empty();
    }
    if (!any) all.list.clear();
    return all;
  }

  /// A constant is the result of a step of its own.
  KerasArgument constant_argument(const Json& config, Call& call, const std::string& called) {
    const auto dtype = keras_dtype(part(config, "dtype"));
    std::vector<double> numbers;
    Shape shape;
    if (!dtype || !flatten(part(config, "value"), shape, 0, numbers)) {
      fail(text(called, ": its constant is no array of numbers of one dtype"));
      return {};
    }
    const Tensor value = cast(reshape(constant(numbers, f64), shape), *dtype);
    value.host_buffer();
    GraphStep step;
    step.run = [value](const GraphLayer*, In) { return Tensors{value}; };
    graph_.steps.push_back(std::move(step));
    call.inputs.push_back(next_value_++);
    return {.input = static_cast<int>(call.inputs.size()) - 1};
  }
  static bool flatten(const Json& value, Shape& shape, int depth, std::vector<double>& numbers) {
    if (value.is_boolean()) return numbers.push_back(value.get<bool>() ? 1 : 0), depth == shape.rank();
    if (value.is_number()) return numbers.push_back(value.get<double>()), depth == shape.rank();
    if (!value.is_array() || depth >= Shape::max_rank || numbers.size() > most_constants) return false;
    const auto size = static_cast<std::int64_t>(value.size());
    if (depth == shape.rank()) {
      if (!numbers.empty()) return false;
      shape.push_back(size);
    }
    return shape[depth] == size &&
           std::ranges::all_of(value, [&](const Json& each) { return flatten(each, shape, depth + 1, numbers); });
  }

  GraphStep step_of(Known& of, const Call& call) {
    const Json& written = *of.written;
    const std::string kind = word(written, "class_name"), module = word(written, "module");
    const Json& config = part(written, "config");
    GraphStep step;
    KerasOptions options(config, of.called, inference_only_, problems_);
    if (module.starts_with("keras.src.ops") || module.starts_with("keras.ops")) {
      if (std::ranges::any_of(call.named, [&](const auto& each) { return call.is_given(each.first); }))
        options.problem("it is called with arguments by name, which are not known");
      if (auto op = keras_op(kind, options, call.arguments)) {
        step.run = [run = std::move(op->run)](const GraphLayer*, In in) { return run(in); };
        step.results = op->results;
      }
      options.finish();
      return step;
    }
    Taking taking(call, of.called, problems_);
    if (const auto merge = merging(kind, options)) {
      options.policy();
      options.finish();
      taking.no_mask();
      taking.finish();
      step.run = [merge = *merge, given = taking.given()](const GraphLayer*, In in) {
        Tensors all;
        for (const int each : given) all.push_back(in[at(each)]);
        return Tensors{merge(all)};
      };
      return step;
    }
    if (!of.is_made) make_layer(of, config);
    if (of.layer < 0) return step;
    step.layer = of.layer;
    step.results = of.results;
    const std::optional<bool> training = taking.flag("training");
    const std::optional<Run> run = std::visit([&](const auto& layer) { return call_of_layer(taking, layer, config); },
                                              graph_.layers[at(of.layer)].second);
    if (taking.flag("return_attention_scores").value_or(false)) taking.problem("attention scores are not returned");
    taking.finish();
    if (run) step.run = in_mode(training, *run);
    return step;
  }
  template <class L> static std::optional<Run> call_of_layer(Taking& taking, const L& layer, const Json& config) {
    if constexpr (std::same_as<L, RecurrentModule>)
      return call_of(taking, layer, states_of(layer), part(config, "return_state") == true);
    else return call_of(taking, layer);
  }
  static int states_of(const RecurrentModule& layer) { return layer.layer_behind().kind() == "lstm" ? 2 : 1; }

  /// An attention whose calls all have a causal mask is a causal one.
  bool is_causal(const Known& of) {
    std::size_t causal = 0, all = 0;
    for (const Json& call : part(*of.written, "inbound_nodes")) {
      ++all;
      if (part(part(call, "kwargs"), "use_causal_mask") == true) ++causal;
    }
    const std::string kind = word(*of.written, "class_name");
    const bool is_option = kind == "Attention" || kind == "AdditiveAttention";
    if (is_option && causal > 0 && causal < all) fail(text(of.called, ": some of its calls have a causal mask"));
    return is_option && causal > 0;
  }
  void make_layer(Known& of, const Json& config) {
    of.is_made = true;
    auto made = make_(*of.written, is_causal(of));
    if (!made) return;
    if (const auto* recurrent = std::get_if<RecurrentModule>(&*made); recurrent && part(config, "return_state") == true)
      of.results = 1 + states_of(*recurrent);
    if (const auto* model = std::get_if<Functional>(&*made))
      of.results = static_cast<int>(model->output_names().size());
    of.layer = static_cast<int>(graph_.layers.size());
    graph_.layers.emplace_back(name_of(*of.written), std::move(*made));
  }

  void read_outputs(const Json& written) {
    for (const auto& [name, place] : places(written)) {
      const auto found = values_.find(key_of(place).value_or(""));
      if (found == values_.end())
        return fail(text("output ", name, " is ", short_form(place), ", which no layer gives"));
      graph_.output_names.push_back(name);
      graph_.outputs.push_back(found->second);
    }
    if (graph_.outputs.empty()) fail("a Functional without outputs");
  }

  const MakeGraphLayer& make_;
  bool inference_only_, is_too_large_ = false;
  std::vector<std::string>& problems_;
  std::map<std::string, Known> known_;
  std::vector<Node> nodes_;
  std::map<std::string, int> values_;  // by node, tensor and layer
  int next_value_ = 0;
  LayerGraph graph_;
};

}  // namespace
}  // namespace keras_graph

LayerGraph graph_of_config(const nlohmann::json& config, const MakeGraphLayer& make, bool inference_only,
                           std::vector<std::string>& problems) {
  return keras_graph::GraphReader(config, make, inference_only, problems).take();
}

Spec keras_input_spec(const nlohmann::json& shape, const nlohmann::json& dtype, std::vector<std::string>& problems) {
  Spec spec{f32, {any_size}};
  if (const auto known = keras_dtype(dtype.is_null() ? nlohmann::json("float32") : dtype)) spec.dtype = *known;
  else problems.push_back("the input is of type " + short_form(dtype) + "; expected a number type");
  if (!shape.is_array() || shape.empty() || shape.size() > Shape::max_rank) {
    problems.push_back("the shape of the input is " + short_form(shape) +
                       "; expected a list of sizes: build the model in Keras before it is saved");
    return spec;
  }
  spec.shape = {};
  for (const nlohmann::json& size : shape) {
    const bool known = size.is_number_unsigned() && size.get<std::uint64_t>() < std::uint64_t{1} << 40;
    if (!known && !size.is_null()) problems.push_back("the shape of the input is " + short_form(shape));
    spec.shape.push_back(known ? size.get<std::int64_t>() : any_size);
  }
  spec.shape.set(0, any_size);
  return spec;
}

}  // namespace gradus
