/// Parts that recurrent layers, their cells and recurrent convolutions share: gates, the first value of the bias, and
/// options under Keras's names.
#pragma once
#include <string>
#include <string_view>
#include "gradus/base/rooms.h"
#include "gradus/nn/call_scope.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus {

enum class CellKind { simple_rnn, gru, lstm };

constexpr std::int64_t gates_of(CellKind kind) { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
constexpr std::string_view keras_name(CellKind kind) {
  return kind == CellKind::lstm ? "LSTM" : kind == CellKind::gru ? "GRU" : "SimpleRNN";
}

/// First bias of an LSTM, [4 * units]: zeros, with ones for the forget gate f if `unit_forget_bias`.
inline Tensor lstm_bias(std::int64_t units, bool unit_forget_bias, DType t) {
  if (!unit_forget_bias) return zeros({4 * units}, t);
  return concat({zeros({units}, t), ones({units}, t), zeros({2 * units}, t)});
}

/// True for a GRU that resets after the product. It has one bias for the input and one for the state: [2, 3 * units].
template <class Options> bool has_two_biases(CellKind kind, const Options& options) {
  return kind == CellKind::gru && options.reset_after;
}
template <class Options> Tensor first_bias(CellKind kind, std::int64_t units, const Options& options, DType t) {
  if (has_two_biases(kind, options)) return zeros({2, 3 * units}, t);
  return kind == CellKind::lstm ? lstm_bias(units, options.unit_forget_bias, t) : zeros({gates_of(kind) * units}, t);
}

/// The mask that earlier layers gave to x, for its places: bool [batch, time].
inline Tensor mask_of_places(const Tensor& x, const Tensor& mask) {
  return x.shape().rank() < 2 ? mask : spread_mask(mask, {x.shape()[0], x.shape()[1]});
}
/// The mask, bool [batch, time] or [batch], of a sequence that is returned in the order of the steps.
inline Tensor in_order_of_steps(const Tensor& mask, bool go_backwards) {
  return go_backwards && mask.defined() && mask.shape().rank() >= 2 ? reverse(mask, {1}) : mask;
}

/// `made`, with the options that all of them have.
template <class Options> LayerConfig with_gates(LayerConfig made, CellKind kind, const Options& options) {
  const auto activation = [](const Activation& given, Tensor (*f)(const Tensor&), const char* name) {
    return given.is(f) ? OptionValue(std::string(name)) : OptionValue(given);
  };
  const auto add = [&](const char* name, OptionValue value) { made.options.push_back({name, std::move(value)}); };
  add("use_bias", options.use_bias);
  add("kernel_regularizer", options.kernel_regularizer);
  add("recurrent_regularizer", options.recurrent_regularizer);
  add("bias_regularizer", options.bias_regularizer);
  add("activation", activation(options.activation, tanh, "tanh"));
  if (kind != CellKind::simple_rnn)
    add("recurrent_activation", activation(options.recurrent_activation, sigmoid, "sigmoid"));
  if (kind == CellKind::lstm) add("unit_forget_bias", options.unit_forget_bias);
  if constexpr (requires { options.reset_after; })
    if (kind == CellKind::gru) add("reset_after", options.reset_after);
  return made;
}

}  // namespace gradus
