/// The walk over a graph, and the module around it.
#include "gradus/backend/xla/stablehlo.h"
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include "gradus/backend/xla/formula_text.h"
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/hash.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/per_value.h"
#include "gradus/graph/scope.h"

namespace gradus::xla {
namespace {

// ---------------------------------------------------------------- elementwise

/// Ops that are one function of StableHLO as a whole.
struct Native {
  std::string_view ours, theirs;
};
constexpr Native natives[] = {{"rsqrt", "rsqrt"}, {"pow", "power"}, {"cbrt", "cbrt"}, {"atan2", "atan2"}};

HloValue write_native(HloWriter& out, std::string_view name, const HloValues& in) {
  const DType t = in[0].dtype();
  if (!is_narrow(t)) return out.same(name, in);
  HloValues wide;
  for (const HloValue& x : in) wide.push_back(out.convert(x, f32));
  return out.convert(out.same(name, wide), t);
}

bool is_product(const Value& v) { return v.op && v.op->name == "matmul"; }

/// True if this is x - max(x), as in a softmax.
bool is_distance_from_maximum(const Site& site) {
  if (site.v.op->name != "subtract" || !is_floating(site.v.spec.dtype)) return false;
  const Value* maximum = &site.operand(1);
  while (maximum->op && (maximum->op->name == "reshape" || maximum->op->name == "broadcast"))
    maximum = &site.graph[maximum->in[0]];
  return maximum->op && maximum->op->name == "max" && maximum->op.is_reduction() && maximum->in[0] == site.v.in[0];
}

HloValue write_elementwise(const Site& site) {
  HloWriter& out = site.out();
  const Value& v = site.v;
  if (is_distance_from_maximum(site)) {
    // If the compiler contracts it to a multiply-add, x has more bits here than where the maximum was found. The
    // largest of large logits would then be above 0, where its exponential is infinite, or far below, where all are 0.
    // The comparison sees rounded values. For infinite ones the distance is NaN, here as there.
    const HloValue &x = site.in[0], &maximum = site.in[1];
    return out.select(out.compare("GE", x, maximum), out.same("subtract", {maximum, maximum}),
                      out.same("subtract", site.in));
  }
  if (v.op->name == "cast")  // a product rounds its own result
    return is_product(behind_views(site.graph, v.in[0])) ? out.convert(site.in[0], v.spec.dtype)
                                                         : out.rounded(site.in[0], v.spec.dtype);
  const bool uses_functions = std::ranges::find(site.to.options.disable, "functions") == site.to.options.disable.end();
  if (uses_functions && is_floating(v.spec.dtype))
    for (const Native& native : natives)
      if (v.op->name == native.ours) return write_native(out, native.theirs, site.in);
  std::vector<DType> types;
  for (const HloValue& x : site.in) types.push_back(x.dtype());
  return write_formula(out, v.op.formula(types), site.in, v.spec.shape, uses_functions);
}

/// A function of the flat index.
HloValue write_index_function(const Site& site) {
  HloWriter& out = site.out();
  const Shape flat{site.spec().shape.size()};
  const HloValue index = out.iota({i64, flat}, 0);
  const HloValue y = write_formula(out, site.v.op.index_formula(), {index}, flat);
  return out.reshape(y, site.spec().shape);
}

// ---------------------------------------------------------------- tables

HloValue write_row(const Site& site) {
  for (const auto rows : {view_rows(), product_rows(), window_rows(), index_rows(), sequence_rows(), elimination_rows(),
                          incomplete_rows()})
    for (const Row& row : rows)
      if (row.op == site.v.op->name) return row.write(site);
  if (site.to.options.replicas > 0)
    for (const Row& row : replica_rows())
      if (row.op == site.v.op->name) return row.write(site);
  for (const Refusal& refusal : refusals())
    if (refusal.op == site.v.op->name) site.refuse(refusal.why);
  if (site.v.op.is_alias() && site.in.size() == 1) return site.out().reshape(site.in[0], site.spec().shape);
  site.refuse("it has no form in StableHLO");
}

HloValue write_value(const Site& site) {
  const Value& v = site.v;
  if (v.is_constant) return site.out().constant(v.spec.dtype, v.constant, v.spec.shape);
  if (v.spec.shape.size() == 0 && !v.op.may_fail()) return site.out().constant(v.spec.dtype, 0, v.spec.shape);
  if (v.op.is_elementwise()) return write_elementwise(site);
  if (v.op.is_index()) return write_index_function(site);
  if (v.op.is_reduction()) return write_reduction(site);
  return write_row(site);
}

}  // namespace

const Value& behind_views(const Graph& graph, int i) {
  const Value* v = &graph[i];
  while (v->op && (v->op->name == "reshape" || v->op->name == "transpose")) v = &graph[v->in[0]];
  return *v;
}

void Site::refuse(std::string_view why) const {
  const DType t = v.in.empty() ? v.spec.dtype : operand(0).spec.dtype;
  throw Unavailable(text(v.op->name, " of ", t, " cannot run on the device ", to.device, ": ", why,
                         "; compute it on the processor: bring what it uses there by .to(cpu())"));
}

std::string Site::message(std::string_view op, std::string_view what) const {
  std::string all = text(op, ": ", what);
  if (const std::string layer = scope_path(v.scope); !layer.empty()) all += ", in " + layer;
  return all;
}

// ---------------------------------------------------------------- graphs

namespace {

/// Values of a graph as they are written, in one go or some before the others.
class GraphText {
 public:
  /// Called with each value that was written; may put another in its place for its readers.
  using Written = std::function<void(int i, HloValue& value)>;

  GraphText(Lowering& to, const Graph& graph, const HloValues& inputs)
      : to_(to), graph_(graph), values_(graph.values.size()), application_(graph, -1) {
    for (std::size_t k = 0; k < graph.inputs.size(); ++k) values_[at(graph.inputs[k])] = inputs[k];
    Applications<int> applications;
    for (int i = 0; i < graph.size(); ++i)
      if (graph[i].op.is_control()) application_[i] = applications.find_or_add(graph[i].op, graph[i].in).number;
  }

  const HloValue& operator[](int i) const { return values_[at(i)]; }
  const PerValue<int>& applications() const { return application_; }

  /// Writes those of `needed` that are not there yet. All results of a branch or a loop that are ever needed are needed
  /// at once.
  void write(const PerValue<bool>& needed, const Written& written = {}) {
    std::map<int, std::vector<int>> results;
    for (int i = 0; i < graph_.size(); ++i)
      if (needed[i] && application_[i] >= 0) results[application_[i]].push_back(i);
    for (int i = 0; i < graph_.size(); ++i) {
      if (!needed[i] || graph_[i].is_input() || !values_[at(i)].name.empty()) continue;
      if (application_[i] < 0) write_one(i);
      else write_application(i, results[application_[i]]);
      if (!written) continue;
      if (application_[i] < 0) written(i, values_[at(i)]);
      else
        for (const int result : results[application_[i]]) written(result, values_[at(result)]);
    }
  }

 private:
  Site site_of(int i) const {
    Site site{to_, graph_, graph_[i], {}, values_};
    for (const int operand : graph_[i].in) site.in.push_back(values_[at(operand)]);
    return site;
  }
  void write_one(int i) {
    const Value& v = graph_[i];
    values_[at(i)] = write_value(site_of(i));
    internal_check(values_[at(i)].spec == Spec{v.spec.dtype, v.spec.shape}, "StableHLO of ", v.op, " is ",
                   values_[at(i)].spec, ", expected ", v.spec);
  }
  void write_application(int i, const std::vector<int>& results) {
    const Value& v = graph_[i];
    std::vector<bool> outputs(at(v.op->outputs(v.op.attributes())));
    for (const int result : results) outputs[at(graph_[result].op.output())] = true;
    const HloValues all = write_control(site_of(i), outputs);
    for (const int result : results) values_[at(result)] = all[at(graph_[result].op.output())];
  }

  Lowering& to_;
  const Graph& graph_;
  HloValues values_;
  PerValue<int> application_;  // of results of branches and loops
};

}  // namespace

HloValues write_graph(Lowering& to, const Graph& graph, const HloValues& inputs, const std::vector<bool>& wanted) {
  PerValue<bool> is_wanted(graph);
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    if (wanted.empty() || wanted[k]) is_wanted[graph.outputs[k]] = true;
  GraphText text(to, graph, inputs);
  text.write(needed_for(graph, std::move(is_wanted)));
  HloValues outputs;
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    outputs.push_back(wanted.empty() || wanted[k] ? text[graph.outputs[k]] : HloValue{});
  return outputs;
}

// ---------------------------------------------------------------- faults

void Lowering::check_range(const HloValue& values, std::int64_t limit, std::string message) {
  if (values.shape().size() == 0) return;
  checks.push_back({std::move(message)});
  const Shape flat{values.shape().size()};
  // A u64 past all limits is negative, as on the processor.
  const HloValue x = out.reshape(out.convert(values, i64), flat), nowhere = out.integer(flat[0], i64, flat);
  const HloValue is_low = out.compare("LT", x, out.integer(0, i64, flat));
  const HloValue is_high = out.compare("GE", x, out.integer(limit, i64, flat));
  const HloValue places = out.select(out.either(is_low, is_high), out.iota({i64, flat}, 0), nowhere);
  const HloValue first = out.reduce("minimum", places, out.integer(flat[0]), {0});
  const HloValue is_bad = out.compare("LT", first, out.integer(flat[0]));
  const HloValue value = out.reshape(out.row_at(x, first, 0), {});  // a place past the end is moved into it
  HloValue found = with_word(fault, 0, out.integer(std::ssize(checks)));
  found = with_word(with_word(found, 1, value), 4, first);
  fault = out.select(out.both(is_bad, is_fine()), found, fault);
}

/// Word by word as one formula, which is one kernel.
HloValue Lowering::with_word(const HloValue& state, std::int64_t word, const HloValue& number) {
  const HloValue is_word = out.compare("EQ", out.iota(state.spec, 0), out.integer(word, i64, state.shape()));
  return out.select(is_word, out.broadcast(number, state.shape()), state);
}

HloValue Lowering::word(const HloValue& state, std::int64_t number) {
  return out.reshape(out.slice_along(state, 0, number, 1), {});
}

HloValue Lowering::is_fine() {
  const HloValue zero = out.integer(0);
  return out.compare("EQ", word(fault, 0), zero);
}

void DataCheck::fail(std::int64_t value, std::int64_t index) const {
  std::string told = message;
  for (const auto& [word, number] : {std::pair{std::string_view("{value}"), value}, {"{index}", index}})
    if (const std::size_t place = told.find(word); place != std::string::npos)
      told.replace(place, word.size(), std::to_string(number));
  throw OutOfRange(told);
}

namespace {

/// The fingerprint stands in the text; before it is known, this line does.
constexpr std::string_view no_fingerprint = "dense<-1> : tensor<i64>  // fingerprint";

std::int64_t fingerprint_of(std::string_view text) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const char c : text) hash = mix(hash, static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  return static_cast<std::int64_t>(hash >> 1);
}

/// The state of this device with the mark of the program, if it has failed.
HloValue marked(Lowering& to, const HloValue& before) {
  HloWriter& out = to.out;
  const HloValue fine = to.is_fine(), zero = out.integer(0), came = out.compare("EQ", to.word(before, 0), zero);
  const HloValue mark = out.define({i64, {}}, text("stablehlo.constant ", no_fingerprint));
  const HloValue known = to.word(to.fault, 2);
  return to.with_word(to.fault, 2, out.select(out.both(came, out.negation(fine)), mark, known));
}

/// The failure on this device or, if it has none, on the first of the others that has one. Each device counts its own
/// successful runs.
HloValue joined_state(Lowering& to, const HloValue& own) {
  HloWriter& out = to.out;
  const std::int64_t replicas = to.options.replicas;
  const HloValue all = write_gathered(to, out.reshape(own, {1, fault_words}));
  const HloValue checks = out.reshape(out.slice_along(all, 1, 0, 1), {replicas});
  const HloValue failed = out.compare("NE", checks, out.integer(0, i64, {replicas})), last = out.integer(replicas - 1);
  const HloValue numbers = out.select(failed, out.iota({i64, {replicas}}, 0), out.broadcast(last, {replicas}));
  const HloValue first = out.reduce("minimum", numbers, last, {0});
  const HloValue theirs = out.reshape(out.row_at(all, first, 0), {fault_words});
  const HloValue zero = out.integer(0), is_fine = out.compare("EQ", to.word(own, 0), zero);
  const HloValue runs = to.word(own, 3);
  return to.with_word(out.select(is_fine, theirs, own), 3, runs);
}

/// The state after a run: whose fault it is, and the count of runs that were right.
HloValue final_state(Lowering& to, const HloValue& before) {
  HloWriter& out = to.out;
  const HloValue state = to.options.replicas > 1 ? to.fault : marked(to, before);
  const HloValue zero = out.integer(0), fine = out.compare("EQ", to.word(state, 0), zero);
  const HloValue runs = to.word(state, 3), next = out.add(runs, out.integer(1));
  return to.with_word(state, 3, out.select(fine, next, runs));
}

/// Values that may fail are written first. So it is known if anything failed before the donated results are computed,
/// and each is selected where it is made: readers read the selected value, and the old values are needed no longer.
HloValues write_with_state(Lowering& to, const Graph& graph, const HloValues& inputs) {
  PerValue<bool> is_output(graph), may_fail(graph);
  for (const int output : graph.outputs) is_output[output] = true;
  const PerValue<bool> needed = needed_for(graph, std::move(is_output));
  for (int i = 0; i < graph.size(); ++i) may_fail[i] = needed[i] && graph[i].op.may_fail();
  PerValue<bool> first = needed_for(graph, std::move(may_fail));
  GraphText text(to, graph, inputs);
  std::set<int> begun;  // branches and loops with an earlier result
  for (int i = 0; i < graph.size(); ++i)
    if (first[i] && text.applications()[i] >= 0) begun.insert(text.applications()[i]);
  for (int i = 0; i < graph.size(); ++i)
    if (needed[i] && begun.contains(text.applications()[i])) first[i] = true;
  text.write(first);
  if (to.options.replicas > 1) to.fault = joined_state(to, marked(to, inputs.back()));

  const std::vector<int>& donated = to.options.donated;
  const HloValue fine = to.out.barrier({to.is_fine()})[0];  // found once, not in the kernel of each result
  const auto chosen = [&](const HloValue& value, std::size_t k) {
    return to.out.select(fine, value, inputs[at(donated[k])]);
  };
  PerValue<int> place(graph, -1);  // of a value that is a donated result: which one
  for (std::size_t k = 0; k < donated.size(); ++k)
    if (donated[k] >= 0 && !first[graph.outputs[k]] && !graph[graph.outputs[k]].is_input())
      place[graph.outputs[k]] = static_cast<int>(k);
  text.write(needed, [&](int i, HloValue& value) {
    if (place[i] >= 0) value = chosen(value, at(place[i]));
  });
  HloValues results;
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const int i = graph.outputs[k];
    const bool is_chosen = k >= donated.size() || donated[k] < 0 || place[i] == static_cast<int>(k);
    results.push_back(is_chosen ? text[i] : chosen(text[i], k));
  }
  return results;
}

}  // namespace

StableHloModule to_stablehlo(const Graph& graph, const StableHloOptions& options, std::string_view device) {
  Lowering to(options, device);
  const bool has_state = std::ranges::any_of(graph.values, [](const Value& v) { return v.op.may_fail(); }) ||
                         std::ranges::any_of(options.donated, [](int input) { return input >= 0; });
  std::vector<int> becomes(graph.inputs.size(), -1);  // of input k: the output that takes its memory
  for (std::size_t k = 0; k < options.donated.size(); ++k)
    if (options.donated[k] >= 0) becomes[at(options.donated[k])] = static_cast<int>(k);

  std::vector<std::string> parameters;
  HloValues inputs;
  const auto add_parameter = [&](const Spec& spec, int output) {
    inputs.push_back({text("%arg", inputs.size()), {spec.dtype, spec.shape}});
    parameters.push_back(text(inputs.back().name, ": ", tensor_type(spec)));
    if (output >= 0) parameters.back() += text(" {tf.aliasing_output = ", output, " : i32}");
  };
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) add_parameter(graph[graph.inputs[k]].spec, becomes[k]);
  if (has_state) {
    add_parameter({i64, {fault_words}}, -1);
    to.fault = inputs.back();
  }
  HloValues results = has_state ? write_with_state(to, graph, inputs) : write_graph(to, graph, inputs);
  if (has_state) { results.push_back(final_state(to, inputs.back())); }
  std::vector<std::string> names, types;
  for (const HloValue& result : results) {
    names.push_back(result.name);
    types.push_back(tensor_type(result.spec));
  }
  StableHloModule module{.checks = std::move(to.checks), .has_fault_state = has_state};
  const std::string replicas =
      options.replicas > 1
          ? text("attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = ", options.replicas, " : i32} ")
          : "";
  module.text =
      text("module @gradus ", replicas, "{\n  func.func public @main(", joined(parameters), ") -> (", joined(types),
           ") {\n", to.out.take_text(), "    return ", joined(names), " : ", joined(types), "\n  }\n}\n");
  module.fingerprint = fingerprint_of(module.text);
  if (const std::size_t place = module.text.rfind(no_fingerprint); place != std::string::npos)
    module.text.replace(place, no_fingerprint.size(), text("dense<", module.fingerprint, "> : tensor<i64>"));
  return module;
}

}  // namespace gradus::xla
