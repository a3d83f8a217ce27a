/// Recurrent layers built from cells, and convolutional LSTMs, with Keras's defaults.
#pragma once
#include <string>
#include <vector>
#include "gradus/nn/convolutions.h"
#include "gradus/nn/recurrent.h"

namespace gradus {

/// Options of recurrent cells.
struct CellOptions {
  bool use_bias = true;          // the cell has a bias
  bool unit_forget_bias = true;  // LSTM: the bias of the forget gate f starts at 1
  bool reset_after = true;       // GRU: gate r applies after the recurrent product; the bias is [2, 3 * units]
  Activation activation = tanh;  // activation of the state
  Activation recurrent_activation = sigmoid;                      // activation of the gates
  Initializer kernel_initializer = initializers::glorot_uniform;  // first values of the kernel
  Initializer recurrent_initializer = initializers::orthogonal;   // first values of the recurrent kernel
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {};  // penalties on the variables
  std::string name = {};                                                                   // empty: by its class
};

/// One step of a recurrent network: x [batch, inputs] and the state -> the result and the new state, [batch, units]
/// each. Called with x alone it starts from zeros. The first call builds. InvalidArgument unless units are positive; in
/// a call unless x is floating, of two dimensions, and with the number of inputs that it was built for.
struct RecurrentCell : Module {
  using Module::Module;
  using Module::operator();
  /// One step. `state`: as many tensors as the state of the result has.
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const;
};
/// An Elman cell; the formula is simple_rnn's.
struct SimpleRNNCell : RecurrentCell {
  explicit SimpleRNNCell(std::int64_t units, CellOptions options = {});
};
/// A gated recurrent unit; the formula is gru's.
struct GRUCell : RecurrentCell {
  explicit GRUCell(std::int64_t units, CellOptions options = {});
};
/// A long short-term memory cell; the formula is lstm's. Its state: the result and the cell.
struct LSTMCell : RecurrentCell {
  explicit LSTMCell(std::int64_t units, CellOptions options = {});
};
/// Stacked cells: each cell's result is the next one's input. Its state: those of all cells, one after the other.
struct StackedRNNCells : RecurrentCell {
  explicit StackedRNNCells(std::vector<RecurrentCell> cells);
};

/// Options of RNN.
struct RNNOptions {
  bool return_sequences = false;          // return the results of all time steps, not only the last
  bool go_backwards = false;              // from the last time step to the first; a returned sequence is in that order
  bool zero_output_for_mask = false;      // masked time steps of a returned sequence are 0; else they repeat the result
  std::string name = {};                  // empty: by its class
  Regularizer activity_regularizer = {};  // on the result
};
/// A cell over time: [batch, time, inputs] -> [batch, units] or [batch, time, units]. Time steps whose mask is false
/// keep the state.
struct RNN : Module {
  explicit RNN(RecurrentCell cell, RNNOptions options = {});
  explicit RNN(std::vector<RecurrentCell> cells, RNNOptions options = {});  // StackedRNNCells of these
  using Module::operator();
  /// The result for a sequence with its initial state or mask.
  Tensor operator()(const Tensor& x, const RecurrentInput& input) const;
  /// The result and the last state.
  RecurrentOutput with_state(const Tensor& x, const RecurrentInput& input = {}) const;
};

/// Options of convolutional LSTMs.
template <class Size> struct ConvLSTMOptionsOf {
  Size strides = 1;                  // strides of the input's convolution
  Padding padding = Padding::valid;  // padding of the input's convolution; the state's keeps the size
  Size dilation = 1;                 // dilation of the input's convolution
  /// As for RNN and cells.
  bool return_sequences = false, go_backwards = false, use_bias = true, unit_forget_bias = true;
  Activation activation = tanh;                                   // activation of the state
  Activation recurrent_activation = sigmoid;                      // activation of the gates
  Initializer kernel_initializer = initializers::glorot_uniform;  // first values of the kernel
  Initializer recurrent_initializer = initializers::orthogonal;   // first values of the recurrent kernel
  /// Penalties on the variables and the result.
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  std::string name = {};  // empty: by its class
};
/// Options of ConvLSTM1D.
using ConvLSTM1DOptions = ConvLSTMOptionsOf<Single>;
/// Options of ConvLSTM2D.
using ConvLSTM2DOptions = ConvLSTMOptionsOf<Pair>;
/// Options of ConvLSTM3D.
using ConvLSTM3DOptions = ConvLSTMOptionsOf<Triple>;

/// An LSTM with convolutions as its products (Shi et al. 2015): [batch, time, spatial..., channels] -> [batch,
/// spatial..., filters], or with the time. Gates are in the order i, f, c, o. Spatial sizes must be known.
struct ConvLSTM1D : Module {
  ConvLSTM1D(std::int64_t filters, Single kernel, ConvLSTM1DOptions options = {});
};
/// ConvLSTM1D with two spatial dimensions.
struct ConvLSTM2D : Module {
  ConvLSTM2D(std::int64_t filters, Pair kernel, ConvLSTM2DOptions options = {});
};
/// ConvLSTM1D with three spatial dimensions.
struct ConvLSTM3D : Module {
  ConvLSTM3D(std::int64_t filters, Triple kernel, ConvLSTM3DOptions options = {});
};

}  // namespace gradus
