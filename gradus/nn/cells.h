/// Recurrent networks of cells, and recurrent convolutions, with Keras's defaults.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "gradus/nn/convolutions.h"
#include "gradus/nn/recurrent.h"

namespace gradus {

struct CellOptions {
  bool use_bias = true;
  bool unit_forget_bias = true;  // LSTM: the bias of the gate f starts at 1
  bool reset_after = true;       // GRU: the gate r applies after the recurrent product; the bias is [2, 3 * units]
  std::optional<Activation> activation = {};            // else tanh
  std::optional<Activation> recurrent_activation = {};  // of the gates; else sigmoid
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {};
  std::string name = {};
};

/// One step of a recurrent network: x [batch, inputs] and the state -> the result and the new state, [batch, units]
/// each. Called with x alone it starts from zeros. The first call builds. InvalidArgument unless units are positive; in
/// a call unless x is floating, of two dimensions and as many inputs as it was built for.
struct RecurrentCell : Module {
  using Module::Module;
  using Module::operator();
  /// `state`: as many tensors as the result's has.
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const;
};
struct SimpleRNNCell : RecurrentCell {
  explicit SimpleRNNCell(std::int64_t units, CellOptions options = {});
};
struct GRUCell : RecurrentCell {
  explicit GRUCell(std::int64_t units, CellOptions options = {});
};
/// Its state: the result and the cell.
struct LSTMCell : RecurrentCell {
  explicit LSTMCell(std::int64_t units, CellOptions options = {});
};
/// Each cell's result is the next one's input. The state: those of all cells, one after the other.
struct StackedRNNCells : RecurrentCell {
  explicit StackedRNNCells(std::vector<RecurrentCell> cells);
};

struct RNNOptions {
  bool return_sequences = false;
  bool go_backwards = false;          // from the last place; a sequence that is returned is in the order of the steps
  bool zero_output_for_mask = false;  // of a sequence that is returned; else the result is repeated
  std::string name = {};
  Regularizer activity_regularizer = {};
};
/// A cell over time: [batch, time, inputs] -> [batch, units] or [batch, time, units]. Places whose mask is false keep
/// the state.
struct RNN : Module {
  explicit RNN(RecurrentCell cell, RNNOptions options = {});
  explicit RNN(std::vector<RecurrentCell> cells, RNNOptions options = {});  // of StackedRNNCells
  using Module::operator();
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
  /// The result and the last state.
  RecurrentOutput with_state(const Tensor& x, const RecurrentInput& input = {}) const;
};

template <class Size> struct ConvLSTMOptionsOf {
  Size strides = 1;
  Padding padding = Padding::valid;  // of the convolution of the input; that of the state has the same size
  Size dilation = 1;
  bool return_sequences = false, go_backwards = false, use_bias = true, unit_forget_bias = true;
  std::optional<Activation> activation = {};            // else tanh
  std::optional<Activation> recurrent_activation = {};  // of the gates; else sigmoid
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  std::string name = {};
};
using ConvLSTM1DOptions = ConvLSTMOptionsOf<Single>;
using ConvLSTM2DOptions = ConvLSTMOptionsOf<Pair>;
using ConvLSTM3DOptions = ConvLSTMOptionsOf<Triple>;

/// An LSTM whose products are convolutions (Shi et al. 2015): [batch, time, spatial..., channels] -> [batch,
/// spatial..., filters], or with the time. Gates in the order i, f, c, o. Spatial sizes must be known.
struct ConvLSTM1D : Module {
  ConvLSTM1D(std::int64_t filters, Single kernel, ConvLSTM1DOptions options = {});
};
struct ConvLSTM2D : Module {
  ConvLSTM2D(std::int64_t filters, Pair kernel, ConvLSTM2DOptions options = {});
};
struct ConvLSTM3D : Module {
  ConvLSTM3D(std::int64_t filters, Triple kernel, ConvLSTM3DOptions options = {});
};

}  // namespace gradus
