/// Recurrent layers, with Keras's defaults. [batch, time, inputs] -> [batch, units], the state after the last place, or
/// [batch, time, units]. Variables: kernel [inputs, gates * units], recurrent_kernel [units, gates * units], bias.
/// InvalidArgument unless units is positive and dropout at least 0 and below 1; in a call unless x is floating and
/// inputs known.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

struct RecurrentOptions {
  bool return_sequences = false;
  double dropout = 0;  // of the inputs, in training: the same elements at every place
  std::string name = {};
  bool go_backwards = false;  // from the last place; a sequence that is returned is in the order of the steps
  bool use_bias = true;
  bool unit_forget_bias = true;  // LSTM: the bias of the gate f starts at 1
  bool reset_after = true;       // GRU: the gate r applies after the recurrent product; the bias is [2, 3 * units]
  std::optional<Activation> activation = {};            // else tanh
  std::optional<Activation> recurrent_activation = {};  // of the gates; else sigmoid
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of what the layer gives
  bool zero_output_for_mask = false;      // of a sequence that is returned, places that do not count are 0
  static constexpr auto ranges() { return std::array{Allowed::share_below_one("dropout")}; }
};

/// Where to start, and which places count: those whose mask is false keep the state and repeat the result. A mask or
/// states that do not fit are an InvalidArgument.
struct RecurrentInput {
  Tensor mask = {};                        // bool [batch, time]; else that which the layers before gave x
  std::vector<Tensor> initial_state = {};  // [batch, units] each: state, and the cell of an LSTM; none: zeros
};
struct RecurrentOutput {
  Tensor output = {};              // what the call without states gives
  std::vector<Tensor> state = {};  // after the last step: state, and the cell of an LSTM
};
/// What recurrent layers have in common.
struct RecurrentModule : Module {
  using Module::Module;
  using Module::operator();
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
  /// Keras's return_state: the result and the last state, from which another call may go on.
  RecurrentOutput with_state(const Tensor& x, const RecurrentInput& input = {}) const;
};

struct SimpleRNN : RecurrentModule {
  explicit SimpleRNN(std::int64_t units, RecurrentOptions options = {});
};
/// Gates in the order z, r, h.
struct GRU : RecurrentModule {
  explicit GRU(std::int64_t units, RecurrentOptions options = {});
};
/// Gates in the order i, f, c, o.
struct LSTM : RecurrentModule {
  explicit LSTM(std::int64_t units, RecurrentOptions options = {});
};

enum class Merge { concat, sum, mul, ave };
struct BidirectionalOptions {
  Merge merge_mode = Merge::concat;  // of the results of both directions, along the last axis
  std::string name = {};
};
/// A recurrent layer and one like it, with weights of its own, that goes the other way. The layer is a SimpleRNN, GRU
/// or LSTM that is not built (else InvalidArgument); sequences of both stand at their places, and are 0 where a mask
/// says that nothing counts.
struct Bidirectional : Module {
  explicit Bidirectional(Module layer, BidirectionalOptions options = {});
  using Module::operator();
  /// mask: bool [batch, time], for both directions. Initial states are an InvalidArgument.
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
};

/// A layer at every place: [batch, time, ...] -> [batch, time, ...], as if all places were examples; InvalidArgument
/// for an input of fewer than 3 dimensions. The mask is handed on; of one of more than [batch, time] the layer is given
/// the rest.
struct TimeDistributed : Module {
  explicit TimeDistributed(Module layer);
};

}  // namespace gradus
