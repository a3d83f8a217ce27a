/// Tracing of branches and loops: the callables become regions over one list of captures.
#include "gradus/ops/control.h"
#include <algorithm>
#include <array>
#include "gradus/graph/context.h"
#include "gradus/ops/body_masks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// Outputs [0, count) of an op.
template <class T> Tensors apply_for_outputs(T op, In operands, int count) {
  Tensors results;
  for (op.output = 0; op.output < count; ++op.output) results.push_back(gradus::detail::apply(op, operands));
  return results;
}

/// "one bool" as a scalar.
Tensor checked_predicate(std::string_view construct, std::string_view what, const Tensor& predicate) {
  require(predicate.dtype() == boolean && predicate.shape().size() == 1, construct, ": ", what, " is ",
          predicate.spec(), ", expected one bool; compare it, or reduce it with reduce_all or reduce_any");
  return predicate.shape().rank() == 0 ? predicate : reshape(predicate, {});
}

void check_state_kept(std::string_view construct, In before, In after) {
  for (std::size_t i = 0; i < before.size(); ++i)
    require(before[i].spec() == after[i].spec(), construct, ": tensor ", i, " of the state is ", before[i].spec(),
            " before an iteration and ", after[i].spec(),
            " after it; a state keeps its dtype and shape: start with what the body gives, or cast or reshape there");
}

std::string listed(In results) {
  std::string all = "(";
  for (const Tensor& result : results) all += text(all.size() > 1 ? ", " : "", result.spec());
  return all + ")";
}

Spec element_of(const Spec& spec) {
  Spec element = spec;
  element.shape.erase(0);
  return element;
}

/// Within the trace of a loop's body: random ops draw other numbers in every iteration.
class IterationKeys final : public Context {
 public:
  /// `number_symbol` stands for the number of the iteration; if it is empty, a symbol is made when it is needed.
  explicit IterationKeys(Tensor number_symbol) : Context(Context::current()->id()), symbol_(std::move(number_symbol)) {}
  /// The number of the iteration, a scalar i64; empty if nobody asked.
  const Tensor& iteration() const { return iteration_; }
  Tensor random_key(const Tensor& key) override {
    if (!iteration_.defined()) iteration_ = symbol_.defined() ? symbol_ : Tensor::parameter(number, id());
    return philox(iteration_, Context::random_key(key), 0);
  }
  std::string_view why_no_assignment() const override { return parent()->why_no_assignment(); }
  bool decide(const Tensor& predicate) override { return parent()->decide(predicate); }

  static constexpr Spec number{i64, {}};

 private:
  const Tensor symbol_;
  Tensor iteration_;
};

/// A trace of a loop's body, and the symbol of the iteration's number; empty if it is not used.
struct BodyTrace {
  RegionTrace trace;
  Tensor iteration;
};
enum class Number { last_symbol, extra_symbol };
BodyTrace trace_body(std::string_view construct, std::span<const Spec> specs, Number number,
                     const detail::Traced& body) {
  Tensor iteration;
  RegionTrace trace(construct, specs, [&](In in) {
    const IterationKeys keys(number == Number::last_symbol ? in.back() : Tensor());
    Tensors results = body(in);
    iteration = keys.iteration();
    return results;
  });
  return {std::move(trace), std::move(iteration)};
}

/// A trace of a function of (carries, chunks), with chunks of `rows` rows.
BodyTrace trace_of_rows(std::string_view construct, const std::function<Tensors(In, In)>& body, In carries, In xs,
                        std::int64_t rows) {
  std::vector<Spec> specs = specs_of(concatenated({carries, xs}));
  for (std::size_t i = carries.size(); i < specs.size(); ++i) specs[i].shape.set(0, rows);
  return trace_body(construct, specs, Number::extra_symbol, [&](In in) {
    Tensors results = body(in.first(carries.size()), in.subspan(carries.size()));
    internal_check(results.size() >= carries.size(), "a loop over rows gives back fewer carries than it takes");
    check_state_kept(construct, carries, results);
    return results;
  });
}

std::int64_t rows_of(std::string_view construct, In xs) {
  require(!xs.empty(), construct, ": there is nothing to divide into rows");
  for (const Tensor& x : xs) {
    require(x.shape().rank() > 0, construct, ": ", x.spec(), " is a scalar; it has no rows to divide");
    require(x.shape()[0] == xs[0].shape()[0], construct, ": ", x.spec(), " and ", xs[0].spec(),
            " have different numbers of rows");
  }
  require(xs[0].shape()[0] >= 0, construct,
          ": the number of rows is not known while tracing; fix it in the function's input signature");
  return xs[0].shape()[0];
}

}  // namespace

namespace detail {

Tensors cond(const Tensor& predicate, const Traced& if_true, const Traced& if_false) {
  const Tensor chosen = checked_predicate("cond", "the predicate", predicate);
  const std::span<const Spec> none;
  const std::uint64_t began = new_sequence();
  const RegionTrace yes("cond", none, if_true), no("cond", none, if_false);
  const In a = yes.results(), b = no.results();
  require(std::ranges::equal(a, b, {}, &Tensor::spec, &Tensor::spec), "cond: if_true gives ", listed(a),
          ", if_false gives ", listed(b), "; both must give the same dtypes and shapes");
  Tensors captures;
  yes.collect(a, captures);
  no.collect(b, captures);
  const Cond op{yes.region(a, {}, captures), no.region(b, {}, captures)};
  const Tensors results = apply_for_outputs(op, concatenated({{&chosen, 1}, captures}), op.outputs());
  for (std::size_t k = 0; k < results.size(); ++k) hand_out_mask(results[k], std::array{a[k], b[k]}, began);
  return results;
}

Tensors while_loop(const Traced& condition, const Traced& body, In state, std::int64_t max_iterations) {
  require(max_iterations >= 0, "while_loop: max_iterations must not be negative, got ", max_iterations);
  std::vector<Spec> specs = specs_of(state);
  specs.push_back(IterationKeys::number);  // the last of the carries, if random ops ask for it
  const auto [asked, asked_iteration] = trace_body("while_loop", specs, Number::last_symbol, [&](In in) {
    lose_masks(in, state);
    return Tensors{checked_predicate("while_loop", "what the condition gives", condition(in).at(0))};
  });
  const auto [done, done_iteration] = trace_body("while_loop", specs, Number::last_symbol, [&](In in) {
    lose_masks(in, state);
    Tensors next = body(in);
    next.push_back(in[state.size()] + 1);
    return next;
  });
  check_state_kept("while_loop", state, In(done.results()).first(state.size()));
  const bool counts = asked_iteration.defined() || done_iteration.defined();
  const std::size_t carries = state.size() + (counts ? 1 : 0);
  const In next = In(done.results()).first(carries);
  Tensors captures;
  asked.collect(asked.results(), captures);
  done.collect(next, captures);
  const While op{.condition = asked.region(asked.results(), In(asked.symbols()).first(carries), captures),
                 .body = done.region(next, In(done.symbols()).first(carries), captures),
                 .carries = static_cast<int>(carries),
                 .max_iterations = max_iterations};
  const Tensor zero = fill({}, 0, i64);
  return apply_for_outputs(op, concatenated({state, {&zero, counts ? std::size_t{1} : 0}, captures}),
                           static_cast<int>(state.size()));
}

Tensors scan(const Traced& body, In state, const Tensor& xs) {
  require(xs.shape().rank() > 0, "scan: xs is a scalar, ", xs.spec(), "; it has no rows to go through");
  return scan_together("scan", body, state, {&xs, 1});
}

}  // namespace detail

namespace {

/// The region of (carries, [the number of the iteration], chunks, captures).
Region region_of_rows(const BodyTrace& body, std::size_t carries, bool numbered, In captures) {
  Tensors symbols = body.trace.symbols();
  if (numbered)
    symbols.insert(symbols.begin() + static_cast<std::ptrdiff_t>(carries),
                   body.iteration.defined() ? body.iteration : body.trace.symbol(IterationKeys::number));
  return body.trace.region(body.trace.results(), symbols, captures);
}

}  // namespace

Tensors scan_together(std::string_view construct, const detail::Traced& body, In state, In xs) {
  internal_check(!xs.empty(), "there is nothing to go through");
  std::vector<Spec> specs = specs_of(state);
  for (const Tensor& x : xs) {
    require(x.shape().rank() > 0 && x.shape()[0] == xs[0].shape()[0], construct, ": ", x.spec(), " and ", xs[0].spec(),
            " have different numbers of rows");
    specs.push_back(element_of(x.spec()));
  }
  const auto [trace, iteration] = trace_body(construct, specs, Number::extra_symbol, [&](In in) {
    lose_masks(in, state);
    return body(in);
  });
  check_state_kept(construct, state, trace.results());
  Tensors captures, symbols = trace.symbols(), singles(xs.begin(), xs.end());
  trace.collect(trace.results(), captures);
  if (iteration.defined()) {
    symbols.push_back(iteration);
    singles.push_back(iota({xs[0].shape()[0]}, i64));
  }
  const Scan op{.body = trace.region(trace.results(), symbols, captures),
                .carries = static_cast<int>(state.size()),
                .singles = static_cast<int>(singles.size()),
                .stacked = static_cast<int>(trace.results().size() - state.size()),
                .iterations = xs[0].shape()[0]};
  return apply_for_outputs(op, concatenated({state, singles, captures}), op.carries + op.stacked);
}

Tensors scan_rows(std::string_view construct, const std::function<Tensors(In carries, In chunks)>& body, In carries,
                  In tensors, std::int64_t rows) {
  const std::int64_t total = rows_of(construct, tensors);
  const MaskedRows masked(tensors);
  const In xs = masked.all();
  const auto on_chunks = [&](In before, In chunks) { return body(before, masked.take(chunks)); };
  require(rows > 0, construct, ": the number of rows at once must be positive, got ", rows);
  rows = std::min(rows, std::max<std::int64_t>(1, total));
  const std::int64_t rest = total % rows;
  std::vector<BodyTrace> traces{trace_of_rows(construct, on_chunks, carries, xs, rows)};
  if (rest > 0) traces.push_back(trace_of_rows(construct, on_chunks, carries, xs, rest));
  Tensors captures, numbers;
  bool numbered = false;
  for (const BodyTrace& each : traces) {
    each.trace.collect(each.trace.results(), captures);
    numbered = numbered || each.iteration.defined();
  }
  Scan op{.carries = static_cast<int>(carries.size()),
          .singles = numbered ? 1 : 0,
          .chunks = static_cast<int>(xs.size()),
          .iterations = total / rows + (rest > 0),
          .rows = rows,
          .last_rows = rest > 0 ? rest : rows};
  if (numbered) numbers.push_back(iota({op.iterations}, i64));
  op.body = region_of_rows(traces[0], carries.size(), numbered, captures);
  if (rest > 0) op.last = region_of_rows(traces[1], carries.size(), numbered, captures);
  return apply_for_outputs(op, concatenated({carries, numbers, xs, captures}), static_cast<int>(op.body.outputs()));
}

}  // namespace gradus
