/// Recurrent layers, with Keras's defaults: [batch, time, inputs] -> [batch, units], the state after the last time
/// step, or [batch, time, units]. Variables: kernel [inputs, gates * units], recurrent_kernel [units, gates * units],
/// bias. InvalidArgument unless units is positive and dropout at least 0 and below 1; in a call unless x is floating
/// and inputs is known.
#pragma once
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// Options of recurrent layers.
struct RecurrentOptions {
  bool return_sequences = false;  // return the results of all time steps, not only the last
  double dropout = 0;         // share of the inputs that is dropped in training: the same elements at every time step
  std::string name = {};      // empty: by its class
  bool go_backwards = false;  // from the last time step to the first; a returned sequence is in that order
  bool use_bias = true;       // the layer has a bias
  bool unit_forget_bias = true;  // LSTM: the bias of the forget gate f starts at 1
  bool reset_after = true;       // GRU: gate r applies after the recurrent product; the bias is [2, 3 * units]
  Activation activation = tanh;  // activation of the state
  Activation recurrent_activation = sigmoid;                      // activation of the gates
  Initializer kernel_initializer = initializers::glorot_uniform;  // first values of the kernel
  Initializer recurrent_initializer = initializers::orthogonal;   // first values of the recurrent kernel
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {};  // penalties on the variables
  Regularizer activity_regularizer = {};                                                   // on the layer's result
  bool zero_output_for_mask = false;  // masked time steps of a returned sequence are 0
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};

/// Initial state and mask. Time steps whose mask is false keep the state and repeat the result. A mask or states that
/// do not fit are an InvalidArgument.
struct RecurrentInput {
  Tensor mask = {};                        // bool [batch, time]; by default the mask that earlier layers gave to x
  std::vector<Tensor> initial_state = {};  // [batch, units] each: state, and the cell of an LSTM; none: zeros
};
/// Result and last state.
struct RecurrentOutput {
  Tensor output = {};              // the result of the call without states
  std::vector<Tensor> state = {};  // after the last step: state, and the cell of an LSTM
};
/// Base of recurrent layers.
struct RecurrentModule : Module {
  using Module::Module;
  using Module::operator();
  /// The result for a sequence with its initial state or mask.
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
  /// Keras's return_state: the result and the last state, from which another call may continue.
  RecurrentOutput with_state(const Tensor& x, const RecurrentInput& input = {}) const;
};

/// An Elman network; the formula is simple_rnn's.
struct SimpleRNN : RecurrentModule {
  explicit SimpleRNN(std::int64_t units, RecurrentOptions options = {});
};
/// A gated recurrent unit; the formula is gru's. Gates are in the order z, r, h.
struct GRU : RecurrentModule {
  explicit GRU(std::int64_t units, RecurrentOptions options = {});
};
/// A long short-term memory; the formula is lstm's. Gates are in the order i, f, c, o.
struct LSTM : RecurrentModule {
  explicit LSTM(std::int64_t units, RecurrentOptions options = {});
};

/// Combination of the results of both directions.
enum class Merge { concat, sum, mul, ave };
/// Options of Bidirectional.
struct BidirectionalOptions {
  Merge merge_mode = Merge::concat;  // of the results of both directions; concat is along the last axis
  std::string name = {};             // empty: by its class
};
/// A recurrent layer and one like it, with weights of its own, in the other direction. The layer is a SimpleRNN, GRU or
/// LSTM that is neither built nor shared (else InvalidArgument). Returned sequences of both are in the order of time,
/// and are 0 where a mask is false.
struct Bidirectional : Module {
  explicit Bidirectional(Module layer, BidirectionalOptions options = {});
  using Module::operator();
  /// The result for a sequence. mask: bool [batch, time], for both directions. Initial states are those of the forward
  /// layer, then those of the backward one.
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
  /// Keras's return_state: the result, and the last states of both, in that order. The backward layer ends at the first
  /// time step.
  RecurrentOutput with_state(const Tensor& x, const RecurrentInput& input = {}) const;
};

/// Applies a layer at every time step: [batch, time, ...] -> [batch, time, ...], as if all time steps were examples.
/// InvalidArgument for an input of fewer than 3 dimensions. The mask is passed on; if it has more dimensions than
/// [batch, time], the layer receives the others.
struct TimeDistributed : Module {
  explicit TimeDistributed(Module layer);
};

}  // namespace gradus
