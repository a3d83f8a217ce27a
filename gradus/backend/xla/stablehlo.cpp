/// The walk over a graph, and the module around it.
#include "gradus/backend/xla/stablehlo.h"
#include <algorithm>
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

/// Whether value i is a product, or a view of one.
bool is_product(const Graph& graph, int i) {
  const Value* v = &graph[i];
  while (v->op && (v->op->name == "reshape" || v->op->name == "transpose")) v = &graph[v->in[0]];
  return v->op && v->op->name == "matmul";
}

HloValue write_elementwise(const Site& site) {
  HloWriter& out = site.out();
  const Value& v = site.v;
  if (v.op->name == "cast")  // a product rounds its own result
    return is_product(site.graph, v.in[0]) ? out.convert(site.in[0], v.spec.dtype)
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

HloValues write_graph(Lowering& to, const Graph& graph, const HloValues& inputs, const std::vector<bool>& wanted) {
  PerValue<bool> is_wanted(graph);
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    if (wanted.empty() || wanted[k]) is_wanted[graph.outputs[k]] = true;
  // What may fail is computed even if nobody reads it, as on the processor.
  const PerValue<bool> needed = needed_for(graph, std::move(is_wanted));
  HloValues values(graph.values.size());
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) values[at(graph.inputs[k])] = inputs[k];

  Applications<int> applications;
  PerValue<int> number(graph, -1);
  std::vector<std::vector<int>> results;  // per application, those that are needed
  for (int i = 0; i < graph.size(); ++i) {
    if (!needed[i] || !graph[i].op.is_control()) continue;
    number[i] = applications.find_or_add(graph[i].op, graph[i].in).number;
    results.resize(std::max(results.size(), at(number[i]) + 1));
    results[at(number[i])].push_back(i);
  }
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    if (!needed[i] || v.is_input() || !values[at(i)].name.empty()) continue;
    Site site{to, graph, v, {}, values};
    for (const int operand : v.in) site.in.push_back(values[at(operand)]);
    if (number[i] < 0) {
      values[at(i)] = write_value(site);
      internal_check(values[at(i)].spec == Spec{v.spec.dtype, v.spec.shape}, "StableHLO of ", v.op, " is ",
                     values[at(i)].spec, ", expected ", v.spec);
      continue;
    }
    std::vector<bool> outputs(at(v.op->outputs(v.op.attributes())));
    for (const int result : results[at(number[i])]) outputs[at(graph[result].op.output())] = true;
    const HloValues all = write_control(site, outputs);
    for (const int result : results[at(number[i])]) values[at(result)] = all[at(graph[result].op.output())];
  }
  HloValues outputs;
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    outputs.push_back(wanted.empty() || wanted[k] ? values[at(graph.outputs[k])] : HloValue{});
  return outputs;
}

// ---------------------------------------------------------------- faults

void Lowering::check_range(const HloValue& values, std::int64_t limit, std::string message) {
  if (values.shape().size() == 0) return;
  checks.push_back({std::move(message)});
  const Shape flat{values.shape().size()};
  // Of a u64 past all limits: negative, as on the processor.
  const HloValue x = out.reshape(out.convert(values, i64), flat), nowhere = out.integer(flat[0], i64, flat);
  const HloValue is_low = out.compare("LT", x, out.integer(0, i64, flat));
  const HloValue is_high = out.compare("GE", x, out.integer(limit, i64, flat));
  const HloValue places = out.select(out.either(is_low, is_high), out.iota({i64, flat}, 0), nowhere);
  const HloValue first = out.reduce("minimum", places, out.integer(flat[0]), {0});
  const HloValue is_bad = out.compare("LT", first, out.integer(flat[0]));
  const HloValue value = out.reshape(out.row_at(x, first, 0), {1});  // a place past the end is moved into it
  const HloValue runs = out.slice_along(fault, 0, 3, 1), mark = out.integer(0, i64, {1});
  const HloValue number = out.integer(std::ssize(checks), i64, {1});
  const HloValue found = out.concatenate({number, value, mark, runs, out.reshape(first, {1})}, 0);
  fault = out.select(out.both(is_bad, is_fine()), found, fault);
}

HloValue Lowering::is_fine() {
  return out.compare("EQ", out.reshape(out.slice_along(fault, 0, 0, 1), {}), out.integer(0));
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

/// The state after a run: whose fault it is, and the count of runs that were right.
HloValue final_state(Lowering& to, const HloValue& before) {
  HloWriter& out = to.out;
  const auto word = [&](const HloValue& state, int k) { return out.slice_along(state, 0, k, 1); };
  const HloValue fine = to.is_fine();
  const HloValue came = out.compare("EQ", out.reshape(word(before, 0), {}), out.integer(0));
  const HloValue mark = out.reshape(out.define({i64, {}}, text("stablehlo.constant ", no_fingerprint)), {1});
  const HloValue runs = word(to.fault, 3);
  const HloValue next = out.select(fine, out.add(runs, out.integer(1, i64, {1})), runs);
  const HloValue whose = out.select(out.both(came, out.negation(fine)), mark, word(to.fault, 2));
  return out.concatenate({word(to.fault, 0), word(to.fault, 1), whose, next, word(to.fault, 4)}, 0);
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
  HloValues results = write_graph(to, graph, inputs);
  if (has_state) {
    const HloValue fine = to.is_fine();
    for (std::size_t k = 0; k < options.donated.size(); ++k)
      if (options.donated[k] >= 0) results[k] = to.out.select(fine, results[k], inputs[at(options.donated[k])]);
    results.push_back(final_state(to, inputs.back()));
  }
  std::vector<std::string> names, types;
  for (const HloValue& result : results) {
    names.push_back(result.name);
    types.push_back(tensor_type(result.spec));
  }
  StableHloModule module{.checks = std::move(to.checks), .has_fault_state = has_state};
  module.text = text("module @gradus {\n  func.func public @main(", joined(parameters), ") -> (", joined(types),
                     ") {\n", to.out.take_text(), "    return ", joined(names), " : ", joined(types), "\n  }\n}\n");
  module.fingerprint = fingerprint_of(module.text);
  if (const std::size_t place = module.text.rfind(no_fingerprint); place != std::string::npos)
    module.text.replace(place, no_fingerprint.size(), text("dense<", module.fingerprint, "> : tensor<i64>"));
  return module;
}

}  // namespace gradus::xla
