/// Recurrent networks: one function per cell, and the loop that runs them.
#include "gradus/ops/recurrent.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// State and, of an LSTM, cell: [batch, units] each.
using Carries = Tensors;
/// (what x gives to the gates, carries) -> the next carries, of which the first is the state.
using Cell = std::function<Carries(const Tensor& from_input, In carries)>;

void check_weights(std::string_view op, const Tensor& x, const RecurrentWeights& w, std::int64_t gates) {
  require(is_floating(x.dtype()) && x.shape().rank() == 3, op, ": expected floats [time, batch, inputs], got ",
          x.spec());
  require(w.recurrent_kernel.shape().rank() == 2 && w.recurrent_kernel.shape()[0] > 0, op, ": the recurrent kernel is ",
          w.recurrent_kernel.spec(), ", expected [units, gates * units]");
  const std::int64_t units = w.recurrent_kernel.shape()[0], columns = dimension::multiply(gates, units);
  const auto check = [&](std::string_view name, const Tensor& given, const Shape& shape) {
    require(!given.defined() || given.spec() == Spec{x.dtype(), shape}, op, ": the ", name, " is ",
            given.defined() ? text(given.spec()) : "", ", expected ", Spec{x.dtype(), shape}, " for ", units,
            " units and x, ", x.spec());
  };
  check("kernel", w.kernel, {x.shape()[2], columns});
  check("recurrent kernel", w.recurrent_kernel, {units, columns});
  check("bias", w.bias, {columns});
  check("recurrent bias", w.recurrent_bias, {columns});
  check("peephole", w.peephole, {dimension::multiply(3, units)});
}

Tensor initial(std::string_view op, std::string_view name, const Tensor& given, const Tensor& x, std::int64_t units) {
  const Spec expected{x.dtype(), {x.shape()[1], units}};
  if (!given.defined()) return fill(expected.shape, 0, x.dtype());
  require(given.spec() == expected, op, ": the initial ", name, " is ", given.spec(), ", expected ", expected);
  return given;
}

/// x kernel + bias, for all places at once.
Tensor project(const Tensor& x, const RecurrentWeights& w) {
  const Tensor y = matmul(x, w.kernel);
  return w.bias.defined() ? y + w.bias : y;
}

Tensor from_state(const Tensor& state, const Tensor& kernel, const Tensor& bias) {
  const Tensor y = matmul(state, kernel);
  return bias.defined() ? y + bias : y;
}

/// Gate k of [..., gates * units].
Tensor gate(const Tensor& gates, std::int64_t k, std::int64_t units) {
  return slice_within(gates, -1, k * units, units);
}

Nonlinearity clipping(const Nonlinearity& given, Tensor (*otherwise)(const Tensor&), double clip) {
  const Nonlinearity f = given ? given : Nonlinearity(otherwise);
  if (clip <= 0) return f;
  return [f, clip](const Tensor& x) { return f(clip_by_value(x, -clip, clip)); };
}

/// The rows of the batch that a place counts for, and the values where it does not: the place is carried.
struct Places {
  Tensor lengths;  // i64 [batch, 1]
  Tensor mask;     // bool [time, batch]
  bool any() const { return lengths.defined() || mask.defined(); }
  /// bool [batch, 1]
  Tensor count(const Tensor& place) const {
    const Tensor is_set = mask.defined() ? expand_dims(gather(mask, place), 1) : Tensor();
    const Tensor is_within = lengths.defined() ? place < lengths : Tensor();
    return !is_set.defined() ? is_within : !is_within.defined() ? is_set : logical_and(is_set, is_within);
  }
};

Places places_of(std::string_view op, const RecurrentRun& options, std::int64_t time, std::int64_t batch) {
  Places places{.lengths = {}, .mask = options.mask};
  require(!places.mask.defined() || places.mask.spec() == Spec{boolean, {time, batch}}, op, ": the mask is ",
          places.mask.defined() ? text(places.mask.spec()) : "", ", expected ", Spec{boolean, {time, batch}});
  if (!options.sequence_lengths.defined()) return places;
  const Tensor& given = options.sequence_lengths;
  require(is_integer(given.dtype()) && given.shape() == Shape{batch}, op, ": sequence_lengths is ", given.spec(),
          ", expected integers ", brackets({batch}));
  places.lengths = reshape(cast(given, i64), {batch, 1});
  return places;
}

/// Runs `cell` over the places of `from_input`, [time, batch, gates * units]. With lengths or a mask the place is
/// carried too, and with a mask the last result.
RecurrentResult run(std::string_view op, const Tensor& from_input, Carries carries, const RecurrentRun& options,
                    const Cell& cell) {
  const std::int64_t time = from_input.shape()[0], batch = from_input.shape()[1];
  const std::size_t parts = carries.size();
  const Places places = places_of(op, options, time, batch);
  if (places.any()) carries.push_back(options.reverse ? extent(time, i64) - 1 : fill({}, 0, i64));
  if (places.mask.defined()) carries.push_back(fill_like(carries[0], 0));
  const auto body = [&](In in) {
    Carries next = cell(in.back(), in.first(parts));
    Tensor y = next[0];
    if (places.any()) {
      const Tensor place = in[parts], counts = places.count(place);
      y = where(counts, y, places.mask.defined() ? in[parts + 1] : fill_like(y, 0));
      for (std::size_t k = 0; k < parts; ++k) next[k] = where(counts, next[k], in[k]);
      next.push_back(options.reverse ? place - 1 : place + 1);
      if (places.mask.defined()) next.push_back(y);
    }
    next.push_back(y);
    return next;
  };
  const Tensors results = detail::scan(body, carries, options.reverse ? reverse(from_input, {0}) : from_input);
  const Tensor& sequence = results.back();
  return {options.reverse ? reverse(sequence, {0}) : sequence, results[0], parts > 1 ? results[1] : Tensor()};
}

}  // namespace

RecurrentResult simple_rnn(const Tensor& x, const RecurrentWeights& w, const RecurrentRun& options) {
  constexpr std::string_view op = "simple_rnn";
  check_weights(op, x, w, 1);
  const Nonlinearity f = clipping(options.activation, tanh, options.clip);
  const Tensor h = initial(op, "state", options.initial_state, x, w.recurrent_kernel.shape()[0]);
  return run(op, project(x, w), {h}, options, [&](const Tensor& from_input, In in) {
    return Carries{f(from_input + from_state(in[0], w.recurrent_kernel, w.recurrent_bias))};
  });
}

RecurrentResult gru(const Tensor& x, const RecurrentWeights& w, const RecurrentRun& options) {
  constexpr std::string_view op = "gru";
  check_weights(op, x, w, 3);
  const std::int64_t units = w.recurrent_kernel.shape()[0];
  const Nonlinearity f = clipping(options.recurrent_activation, sigmoid, options.clip);
  const Nonlinearity g = clipping(options.activation, tanh, options.clip);
  const auto first_gates = [&](const Tensor& t, std::int64_t count) { return slice_within(t, -1, 0, count * units); };
  const auto mixed = [](const Tensor& z, const Tensor& h, const Tensor& candidate) {
    return Carries{z * h + (1 - z) * candidate};
  };
  const Cell reset_after = [&](const Tensor& from_input, In in) {
    const Tensor recurrent = from_state(in[0], w.recurrent_kernel, w.recurrent_bias);
    const Tensor zr = f(first_gates(from_input, 2) + first_gates(recurrent, 2));
    const Tensor candidate = g(gate(from_input, 2, units) + gate(zr, 1, units) * gate(recurrent, 2, units));
    return mixed(gate(zr, 0, units), in[0], candidate);
  };
  const Tensor kernel_zr = first_gates(w.recurrent_kernel, 2), kernel_h = gate(w.recurrent_kernel, 2, units);
  const Tensor bias_zr = w.recurrent_bias.defined() ? first_gates(w.recurrent_bias, 2) : Tensor();
  const Tensor bias_h = w.recurrent_bias.defined() ? gate(w.recurrent_bias, 2, units) : Tensor();
  const Cell reset_before = [&](const Tensor& from_input, In in) {
    const Tensor zr = f(first_gates(from_input, 2) + from_state(in[0], kernel_zr, bias_zr));
    const Tensor kept = gate(zr, 1, units) * in[0];
    return mixed(gate(zr, 0, units), in[0], g(gate(from_input, 2, units) + from_state(kept, kernel_h, bias_h)));
  };
  const Tensor h = initial(op, "state", options.initial_state, x, units);
  return run(op, project(x, w), {h}, options, options.reset_after ? reset_after : reset_before);
}

RecurrentResult lstm(const Tensor& x, const RecurrentWeights& w, const RecurrentRun& options) {
  constexpr std::string_view op = "lstm";
  check_weights(op, x, w, 4);
  const std::int64_t units = w.recurrent_kernel.shape()[0];
  const Nonlinearity f = clipping(options.recurrent_activation, sigmoid, options.clip);
  const Nonlinearity g = clipping(options.activation, tanh, options.clip);
  const Nonlinearity h = clipping(options.cell_activation, tanh, options.clip);
  const auto look = [&](const Tensor& x, std::int64_t k, const Tensor& cell) {
    return w.peephole.defined() ? x + gate(w.peephole, k, units) * cell : x;
  };
  const Cell cell = [&](const Tensor& from_input, In in) {
    const Tensor all = from_input + from_state(in[0], w.recurrent_kernel, w.recurrent_bias);
    const Tensor i = f(look(gate(all, 0, units), 0, in[1]));
    const Tensor forget = options.couple_input_forget ? 1 - i : f(look(gate(all, 1, units), 1, in[1]));
    const Tensor c = forget * in[1] + i * g(gate(all, 2, units));
    const Tensor o = f(look(gate(all, 3, units), 2, c));
    return Carries{o * h(c), c};
  };
  const Carries first{initial(op, "state", options.initial_state, x, units),
                      initial(op, "cell", options.initial_cell, x, units)};
  return run(op, project(x, w), first, options, cell);
}

}  // namespace gradus
