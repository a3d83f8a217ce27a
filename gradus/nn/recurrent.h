/// Recurrent layers, with Keras's defaults. [batch, time, inputs] -> [batch, units], the state after the last place, or
/// [batch, time, units]. Variables: kernel [inputs, gates * units], recurrent_kernel [units, gates * units], bias.
#pragma once
#include <optional>
#include <string>
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"

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
};

struct SimpleRNN : Module {
  explicit SimpleRNN(std::int64_t units, RecurrentOptions options = {});
};
/// Gates in the order z, r, h.
struct GRU : Module {
  explicit GRU(std::int64_t units, RecurrentOptions options = {});
};
/// Gates in the order i, f, c, o.
struct LSTM : Module {
  explicit LSTM(std::int64_t units, RecurrentOptions options = {});
};

enum class Merge { concat, sum, mul, ave };
struct BidirectionalOptions {
  Merge merge_mode = Merge::concat;  // of the results of both directions, along the last axis
  std::string name = {};
};
/// A recurrent layer and one like it, with weights of its own, that goes the other way. The layer must not be built
/// (InvalidArgument); sequences of both stand at their places.
struct Bidirectional : Module {
  explicit Bidirectional(Module layer, BidirectionalOptions options = {});
};

/// A layer at every place: [batch, time, ...] -> [batch, time, ...], as if all places were examples.
struct TimeDistributed : Module {
  explicit TimeDistributed(Module layer);
};

}  // namespace gradus
