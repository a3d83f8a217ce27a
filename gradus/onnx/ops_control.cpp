/// ONNX's branches and loops. If the deciding value is known on the host, C++ decides, so shapes may depend on data
/// and differ from one iteration to the next. Within a trace, where it is not known, they become cond and
/// while_loop. A loop of a fixed or symbolic number of iterations becomes a scan, or else is unrolled.
#include <algorithm>
#include <optional>
#include "gradus/graph/context.h"
#include "gradus/onnx/row.h"
#include "gradus/onnx/symbolic_values.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

/// A loop that is unrolled within a trace makes a program of at most this many bodies.
constexpr std::int64_t most_unrolled = 1000;

/// The body ends the loop by its condition.
struct EndsEarly {};

/// The result of `scan`; nothing if it cannot be one, but can be unrolled: its state changes its shape, or shapes
/// follow from the number of the iteration. Short ones are scans too: a value that follows from a size is a number like
/// any other where the size is known, and the program has to be the same where it is open.
template <class F> std::optional<Tensors> if_scannable(std::int64_t count, F scan) {
  try {
    return scan();
  } catch (const EndsEarly&) { return {}; } catch (const Error&) {
    if (count < 0 || count > most_unrolled) throw;
    return {};
  }
}

Tensor one_boolean(const Call& c, const Tensor& x, std::string_view what) {
  c.require(x.dtype() == boolean && x.shape().size() == 1, what, " must be one boolean, it is ", x.spec());
  return x.shape().rank() == 0 ? x : reshape(x, {});
}
/// A constant that is known on the host even within a trace.
template <class T> Tensor as_scalar(T value) {
  const Untraced outside;
  return from_values(std::vector<T>{value}, {});
}
/// The truth of a value that does not depend on a trace.
bool holds(const Tensor& predicate) { return predicate.item() != 0; }

Tensors if_then_else(const Call& c) {
  const Tensor chosen = one_boolean(c, c[0], "the condition");
  const auto branch = [&](const char* name) { return c.run(c.graph(name), {}); };
  if (!chosen.is_symbolic()) return branch(holds(chosen) ? "then_branch" : "else_branch");
  return detail::cond(chosen, [&](In) { return branch("then_branch"); }, [&](In) { return branch("else_branch"); });
}

/// Results of iterations, stacked along a new axis.
class Stacks {
 public:
  Stacks(const GraphDefinition& body, std::size_t first)
      : body_(body), first_(first), stacks_(body.outputs.size() - first) {}

  void add(In results) {
    for (std::size_t i = 0; i < stacks_.size(); ++i) stacks_[i].push_back(results[first_ + i]);
  }
  std::size_t size() const { return stacks_.size(); }
  /// `backwards` where the last iteration comes first. Without iterations: as the body declares.
  Tensor stacked(std::size_t i, std::int64_t axis, bool backwards, const Call& c) {
    Tensors& all = stacks_[i];
    if (backwards) std::ranges::reverse(all);
    if (!all.empty()) return stack(all, c.axis(axis, all.front().shape().rank() + 1));
    const ValueInfo& declared = body_.outputs[first_ + i];
    Shape shape;
    if (declared.shape)
      for (const std::int64_t extent : *declared.shape) shape.push_back(std::max<std::int64_t>(extent, 0));
    shape.insert(c.axis(axis, shape.rank() + 1), 0);
    return zeros(shape, declared.dtype);
  }

 private:
  const GraphDefinition& body_;
  std::size_t first_;
  std::vector<Tensors> stacks_;
};

// ---------------------------------------------------------------- Loop

struct LoopState {
  const GraphDefinition& body;
  std::int64_t most;  // iterations: a number, or a dimension
  Tensor limit;       // the same where it is not known on the host: one i64
  Tensor goes_on;     // one boolean
  Tensors carried;
  bool stacks() const { return body.outputs.size() > 1 + carried.size(); }
};

/// How often the loop may run.
void read_limit(const Call& c, LoopState& state) {
  if (!c.has(0)) return;
  if (!c[0].is_symbolic()) {
    state.most = std::max<std::int64_t>(0, c.integer_of(0));
    return;
  }
  c.require(is_integer(c[0].dtype()) && c[0].shape().size() == 1, "the trip count must be one integer, it is ",
            c[0].spec());
  state.limit = reshape(cast(c[0], i64), {});
  if (const auto values = symbolic_values(c[0])) {
    const auto [value, symbolic] = values->front();
    state.most = symbolic ? value : std::max<std::int64_t>(0, value);
    if (!symbolic) state.limit = {};
  }
}

Tensors body_inputs(const Tensor& iteration, const Tensor& goes_on, In carried) {
  Tensors in{iteration, goes_on};
  in.insert(in.end(), carried.begin(), carried.end());
  return in;
}

/// The rest of a loop whose end depends on the trace.
Tensors loop_in_trace(const Call& c, const LoopState& state, std::int64_t done) {
  c.require(
      !state.stacks(),
      "within a trace, a loop whose end depends on traced values cannot stack results: their number is not known");
  const std::size_t carries = state.carried.size();
  const bool bounded = !state.limit.defined() && state.most < INT64_MAX;
  const auto goes_on = [&](In in) {
    if (state.limit.defined()) return Tensors{logical_and(in[1], in[0] < state.limit)};
    return Tensors{bounded ? logical_and(in[1], in[0] < state.most) : in[1]};
  };
  Tensors initial = body_inputs(fill({}, done, i64), state.goes_on, state.carried);
  const Tensors last = detail::while_loop(
      goes_on,
      [&](In in) {
        const Tensors results = c.run(state.body, body_inputs(in[0], in[1], in.subspan(2, carries)));
        Tensors next{in[0] + 1, one_boolean(c, results[0], "what the body gives as condition")};
        next.insert(next.end(), results.begin() + 1, results.end());
        return next;
      },
      initial, bounded && state.most <= most_unrolled ? state.most : 0);
  return Tensors(last.begin() + 2, last.begin() + 2 + static_cast<std::ptrdiff_t>(carries));
}

/// A loop that goes on as often as it may: results of iterations are then stacked by the scan.
Tensors loop_as_scan(const Call& c, const LoopState& state) {
  require_not_negative(state.most, "a loop's trip count, which follows from sizes, is negative");
  const std::size_t carries = state.carried.size();
  const Tensor numbers = iota({state.most}, i64);
  const auto body = [&](In in) {
    const Tensors results = c.run(state.body, body_inputs(in[carries], as_scalar(true), in.first(carries)));
    const Tensor goes_on = one_boolean(c, results[0], "what the body gives as condition");
    if (goes_on.is_symbolic() || !holds(goes_on)) throw EndsEarly();
    return Tensors(results.begin() + 1, results.end());
  };
  return scan_together("Loop", body, state.carried, {&numbers, 1});
}

Tensors loop(const Call& c) {
  const std::size_t carries = static_cast<std::size_t>(std::max(0, c.inputs() - 2));
  LoopState state{c.graph("body"), INT64_MAX, {}, {}, {}};
  c.require(state.body.inputs.size() == 2 + carries && state.body.outputs.size() >= 1 + carries, "the body takes ",
            state.body.inputs.size(), " inputs and gives ", state.body.outputs.size(), " outputs, for ", carries,
            " carried values it must take ", 2 + carries, " and give at least ", 1 + carries);
  read_limit(c, state);
  state.goes_on = c.has(1) ? one_boolean(c, c[1], "the condition") : as_scalar(true);
  for (std::size_t i = 0; i < carries; ++i) state.carried.push_back(c[static_cast<int>(i) + 2]);
  const bool counts = state.most < INT64_MAX && !state.goes_on.is_symbolic() && holds(state.goes_on);
  if (counts && Context::current())
    if (auto done = if_scannable(state.most, [&] { return loop_as_scan(c, state); })) return std::move(*done);
  if (state.limit.defined()) return loop_in_trace(c, state, 0);
  Stacks stacks(state.body, 1 + carries);
  for (std::int64_t i = 0; i < state.most; ++i) {
    const bool too_long = Context::current() && i >= most_unrolled;
    if (state.goes_on.is_symbolic() || (too_long && !state.stacks())) return loop_in_trace(c, state, i);
    c.require(!too_long, "within a trace, a loop that stacks results and is no scan may have ", most_unrolled,
              " iterations");
    if (!holds(state.goes_on)) break;
    const Tensors results = c.run(state.body, body_inputs(as_scalar(i), state.goes_on, state.carried));
    state.goes_on = one_boolean(c, results[0], "what the body gives as condition");
    state.carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carries));
    stacks.add(results);
  }
  Tensors all = state.carried;
  for (std::size_t i = 0; i < stacks.size(); ++i) all.push_back(stacks.stacked(i, 0, false, c));
  return all;
}

// ---------------------------------------------------------------- Scan

/// One number for each of `count` inputs or outputs; zeros where the attribute is left out.
std::vector<std::int64_t> numbers_for(const Call& c, const char* attribute, std::size_t count) {
  const auto given = c.integers(attribute, std::vector<std::int64_t>(count, 0));
  c.require(given.size() == count, "attribute `", attribute, "` has ", given.size(), " numbers, needs ", count);
  return given;
}

struct ScanPlan {
  const GraphDefinition& body;
  std::vector<std::int64_t> input_axes, backwards, output_axes, output_backwards;
};

/// `x` with dimension `from` at place `to`.
Tensor moved(const Tensor& x, int from, int to) {
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

Tensors scan_as_op(const Call& c, const ScanPlan& plan, const Tensors& state, const Tensors& xs,
                   const std::vector<int>& axes) {
  Tensors rows;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Tensor along = moved(xs[i], axes[i], 0);
    rows.push_back(plan.backwards[i] ? reverse(along, {0}) : along);
  }
  Tensors results = scan_together("Scan", [&](In in) { return c.run(plan.body, in); }, state, rows);
  for (std::size_t i = 0; state.size() + i < results.size(); ++i) {
    Tensor& stacked = results[state.size() + i];
    if (plan.output_backwards[i]) stacked = reverse(stacked, {0});
    stacked = moved(stacked, 0, c.axis(plan.output_axes[i], stacked.shape().rank()));
  }
  return results;
}

Tensors scan_elements(const Call& c, const ScanPlan& plan, Tensors state, const Tensors& xs) {
  c.require(!xs.empty(), "there is nothing to go through: num_scan_inputs is 0");
  std::vector<int> axes;
  for (std::size_t i = 0; i < xs.size(); ++i) axes.push_back(c.axis(plan.input_axes[i], xs[i].shape().rank()));
  const std::int64_t length = xs[0].shape()[axes[0]];
  for (std::size_t i = 0; i < xs.size(); ++i)
    c.require(xs[i].shape()[axes[i]] == length, "sequences of ", length, " and ", xs[i].shape()[axes[i]], " elements");
  if (Context::current())
    if (auto done = if_scannable(length, [&] { return scan_as_op(c, plan, state, xs, axes); })) return std::move(*done);
  c.require(length >= 0, "the length of the sequence is not known");
  c.require(!Context::current() || length <= most_unrolled, "within a trace, a sequence that is no scan may have ",
            most_unrolled, " elements, this one has ", length);
  Stacks stacks(plan.body, state.size());
  for (std::int64_t t = 0; t < length; ++t) {
    Tensors in = state;
    for (std::size_t i = 0; i < xs.size(); ++i)
      in.push_back(squeeze(slice_within(xs[i], axes[i], plan.backwards[i] ? length - 1 - t : t, 1), {axes[i]}));
    const Tensors results = c.run(plan.body, in);
    stacks.add(results);
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(state.size()));
  }
  for (std::size_t i = 0; i < stacks.size(); ++i)
    state.push_back(stacks.stacked(i, plan.output_axes[i], plan.output_backwards[i] != 0, c));
  return state;
}

/// Opset 8: a leading dimension of examples, each of which is scanned by itself.
Tensors scan_examples(const Call& c, const ScanPlan& plan, In state, In xs) {
  c.require(!c.has(0), "sequences of different lengths are not supported");
  const std::int64_t examples = xs[0].shape()[0];
  c.require(examples > 0, "there is no example");
  std::vector<Tensors> results(plan.body.outputs.size());
  for (std::int64_t e = 0; e < examples; ++e) {
    Tensors own_state, own_xs;
    for (const Tensor& each : state) own_state.push_back(each[e]);
    for (const Tensor& each : xs) own_xs.push_back(each[e]);
    const Tensors own = scan_elements(c, plan, own_state, own_xs);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(own[i]);
  }
  Tensors all;
  for (const Tensors& each : results) all.push_back(stack(each, 0));
  return all;
}

Tensors scan_over(const Call& c) {
  const GraphDefinition& body = c.graph("body");
  const int first = c.version() == 8 ? 1 : 0;
  const std::int64_t given = c.integer("num_scan_inputs");
  c.require(given > 0 && given <= c.inputs() - first, "num_scan_inputs is ", given, ", there are ", c.inputs() - first,
            " inputs");
  const auto sequences = static_cast<std::size_t>(given),
             states = static_cast<std::size_t>(c.inputs() - first) - sequences;
  c.require(body.inputs.size() == states + sequences && body.outputs.size() >= states, "the body takes ",
            body.inputs.size(), " inputs and gives ", body.outputs.size(), " outputs, there are ", states,
            " values of state and ", sequences, " sequences");
  Tensors state, xs;
  for (int i = first; i < c.inputs(); ++i) (state.size() < states ? state : xs).push_back(c[i]);
  const std::size_t stacked = body.outputs.size() - states;
  const std::vector<std::int64_t> zeros(std::max(stacked, sequences), 0);
  if (first == 1)
    return scan_examples(c, {body, zeros, numbers_for(c, "directions", sequences), zeros, zeros}, state, xs);
  return scan_elements(
      c,
      {body, numbers_for(c, "scan_input_axes", sequences), numbers_for(c, "scan_input_directions", sequences),
       numbers_for(c, "scan_output_axes", stacked), numbers_for(c, "scan_output_directions", stacked)},
      std::move(state), xs);
}

const Table control_table{
    {"If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, if_then_else},
    {"Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, loop},
    {"Scan", {8, 9, 11, 16, 19, 21, 23, 24, 25}, scan_over},
};

}  // namespace
}  // namespace gradus::onnx
