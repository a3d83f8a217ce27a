/// Rules of calls.
#include "gradus/ops/call.h"
#include <algorithm>
#include "gradus/graph/context.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/barrier.h"
#include "gradus/ops/body_masks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

/// InvalidArgument unless `in` are the specs of the region's inputs.
void check_operands(std::string_view op, const Region& region, Specs in) {
  require(static_cast<bool>(region), op, ": its region is empty");
  require(in.size() == region.inputs(), op, ": its region has ", region.inputs(), " inputs, got ", in.size(),
          " operands");
  for (std::size_t i = 0; i < in.size(); ++i)
    require(in[i] == region.input(i), op, ": input ", i, " of its region is ", region.input(i), ", got ", in[i]);
}

std::vector<bool> rows_of(std::uint32_t mask, std::size_t count) {
  std::vector<bool> rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(has_rows(mask, i));
  return rows;
}

/// A trace of `region` on n rows, where input i has rows if rows[i]; result k has them if wants_rows(k), and else is
/// the sum over them.
RegionTrace trace_on_rows(const Region& region, In in, const std::vector<bool>& rows, std::int64_t n,
                          const std::function<bool(std::size_t)>& wants_rows) {
  return RegionTrace("vectorized_map", specs_of(in), [&](In x) {
    std::vector<bool> varied;
    Tensors results = Transforms::vmap([&](In row) { return replay(region, row); }, x, rows, n, varied);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!varied[k]) results[k] = repeat_rows(results[k], n);
      if (!wants_rows(k)) results[k] = reduce_sum(results[k], {.axis = {0}});
    }
    return results;
  });
}

struct Call {
  static constexpr auto name = "call";
  Region body = {};
  int output = 0;

  int outputs() const { return static_cast<int>(body.outputs()); }
  const Region& inlined() const { return body; }
  Spec infer(Specs in) const {
    check_operands(name, body, in);
    require(output >= 0 && output < outputs(), "call: there is no output ", output);
    return body.output(static_cast<std::size_t>(output));
  }
  /// The body once more, from its inputs, once the cotangent is there.
  Tensors vjp(In in, const Cotangents& dy) const {
    const Tensor& after = *std::ranges::find_if(dy.of, &Tensor::defined);
    Tensors again, sources;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < in.size(); ++i) {
      again.push_back(barrier(in[i], after));
      if (!dy.wanted[i] || !is_floating(in[i].dtype())) continue;
      sources.push_back(again.back());
      places.push_back(i);
    }
    const Tensors found = Transforms::vjp(replay(body, again), sources, dy.of, again);
    Tensors terms(in.size());
    for (std::size_t k = 0; k < places.size(); ++k) terms[places[k]] = found[k];
    return terms;
  }
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const {
    const auto all = [](std::size_t) { return true; };
    const Captured made = capture(trace_on_rows(body, in, rows_of(mask, in.size()), n, all));
    return gradus::detail::apply(Call{made.region, output}, In(concatenated({in, made.captures})));
  }
};

/// `forward` is called with (arguments, captures), `backward` with (arguments, cotangent, captures).
struct CustomCall {
  static constexpr auto name = "custom_call";
  Region forward = {}, backward = {};
  int arguments = 0;

  int output = 0;  // the only one
  int outputs() const { return 1; }
  const Region& inlined() const { return forward; }
  Spec infer(Specs in) const {
    check_operands(name, forward, in);
    const auto count = static_cast<std::size_t>(std::max(0, arguments));
    require(arguments >= 0 && count <= in.size() && output == 0 && forward.outputs() == 1 && backward &&
                backward.inputs() == in.size() + 1 && backward.outputs() == count,
            "custom_call: its regions do not fit together");
    for (std::size_t i = 0; i < in.size() + 1; ++i)
      require(backward.input(i) == (i < count    ? in[i]
                                    : i == count ? forward.output(0)
                                                 : in[i - 1]),
              "custom_call: input ", i, " of its backward region is ", backward.input(i));
    for (std::size_t i = 0; i < count; ++i)
      require(backward.output(i) == in[i], "custom_call: the gradient by argument ", i, " is ", backward.output(i),
              ", the argument ", in[i]);
    return forward.output(0);
  }
  Tensors vjp(In in, const Cotangents& dy) const {
    const auto count = static_cast<std::ptrdiff_t>(arguments);
    Tensors given(in.begin(), in.begin() + count);
    given.push_back(dy.of[0]);
    given.insert(given.end(), in.begin() + count, in.end());
    Tensors terms = replay(backward, given);
    for (Tensor& term : terms)
      if (!is_floating(term.dtype())) term = {};
    terms.resize(in.size());
    add_captured(in, dy, terms);
    return terms;
  }
  /// An argument that is the same for all rows gets the sum of their gradients.
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const {
    const std::vector<bool> rows = rows_of(mask, in.size());
    const auto count = static_cast<std::ptrdiff_t>(arguments);
    const RegionTrace value = trace_on_rows(forward, in, rows, n, [](std::size_t) { return true; });
    Tensors given(in.begin(), in.end());
    given.insert(given.begin() + count, value.results()[0]);  // for its spec
    std::vector<bool> given_rows = rows;
    given_rows.insert(given_rows.begin() + count, true);
    const RegionTrace gradients =
        trace_on_rows(backward, given, given_rows, n, [&](std::size_t k) { return static_cast<bool>(rows[k]); });
    Tensors captures;
    value.collect(value.results(), captures);
    gradients.collect(gradients.results(), captures);
    const CustomCall call{value.region(value.results(), value.symbols(), captures),
                          gradients.region(gradients.results(), gradients.symbols(), captures), arguments};
    return gradus::detail::apply(call, In(concatenated({in, captures})));
  }

 private:
  /// Captured values have their ordinary gradient.
  void add_captured(In in, const Cotangents& dy, Tensors& terms) const {
    Tensors held, sources;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < in.size(); ++i) {
      held.push_back(gradus::detail::apply(ReshapeOp{in[i].shape()}, in[i]));  // where the walk back ends
      if (i < static_cast<std::size_t>(arguments) || !dy.wanted[i] || !is_floating(in[i].dtype())) continue;
      sources.push_back(held[i]);
      places.push_back(i);
    }
    if (sources.empty()) return;
    const Tensors found = Transforms::vjp(replay(forward, held), sources, dy.of, held);
    for (std::size_t k = 0; k < places.size(); ++k) terms[places[k]] = found[k];
  }
};

/// An empty gradient is one of zeros.
void check_gradients(In in, Tensors& gradients) {
  require(gradients.size() == in.size(), "custom_gradient: the pullback gives ", gradients.size(), " gradients for ",
          in.size(), " arguments; give one for each, Tensor() where there is none");
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = fill(in[i].shape(), 0, in[i].dtype());
    require(gradients[i].spec() == in[i].spec(), "custom_gradient: the pullback gives ", gradients[i].spec(),
            " for argument ", i, ", which is ", in[i].spec(), "; a gradient has the spec of its argument");
  }
}

}  // namespace

Tensors detail::recomputed(std::string_view construct, In in, const std::function<Tensors(In)>& f) {
  if (CallContext::here().cache) return f(in);  // its layers extend the cache, and nothing is kept for a gradient
  std::size_t count = 0;
  std::vector<std::size_t> masked;  // results with a mask, or that have lost theirs
  const RegionTrace trace(construct, specs_of(in), [&](In x) {
    take_masks(x, in);
    Tensors results = f(x);
    count = results.size();
    masked = SequenceMask::append_some(results);
    return results;
  });
  const Captured made = capture(trace);
  const Tensors operands = concatenated({in, made.captures});
  Tensors results;
  for (std::size_t k = 0; k < made.region.outputs(); ++k)
    results.push_back(gradus::detail::apply(Call{made.region, static_cast<int>(k)}, In(operands)));
  if (!SequenceMask::is_used()) return results;
  for (std::size_t k = 0; k < count; ++k) SequenceMask::set(results[k], {});
  for (std::size_t k = 0; k < masked.size(); ++k) SequenceMask::give(results[masked[k]], results[count + k]);
  results.resize(count);
  return results;
}

Tensor detail::with_gradient(In in, const std::function<WithPullback(In)>& f) {
  // One trace of both: the pullback uses what the function computed. Results: the value, its cotangent, the gradients.
  const std::uint64_t began = new_sequence();
  const RegionTrace trace("custom_gradient", specs_of(in), [&](In x) {
    take_masks(x, in);
    const WithPullback made = f(x);
    require(made.value.defined(), "custom_gradient: the function gives an empty tensor");
    const Tensor dy = Tensor::parameter(made.value.spec(), Context::current()->id());
    Tensors gradients = made.pullback(dy);
    check_gradients(in, gradients);
    return concatenated({Tensors{made.value, dy}, gradients});
  });
  const In results = trace.results();
  const In value = results.first(1), gradients = results.subspan(2);
  Tensors arguments_and_dy = trace.symbols(), captures;
  arguments_and_dy.push_back(results[1]);
  trace.collect(value, captures);
  trace.collect(gradients, captures);
  const CustomCall call{trace.region(value, trace.symbols(), captures),
                        trace.region(gradients, arguments_and_dy, captures), static_cast<int>(in.size())};
  const Tensor made = gradus::detail::apply(call, In(concatenated({in, captures})));
  hand_out_mask(made, value, began);
  return made;
}

}  // namespace gradus
