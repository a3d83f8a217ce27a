/// Recurrent networks over a sequence: one `scan` in one direction. Products with the inputs are computed for all time
/// steps at once, before the loop. Gates lie side by side in Keras's order: z r h of a GRU, i f c o of an LSTM.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Weights of a recurrent network, of one floating dtype. Empty ones are left out.
struct RecurrentWeights {
  Tensor kernel;               // [inputs, gates * units]
  Tensor recurrent_kernel;     // [units, gates * units]
  Tensor bias = {};            // [gates * units], added to the product with the kernel
  Tensor recurrent_bias = {};  // [gates * units], added to the product with the recurrent kernel
  Tensor peephole = {};        // LSTM: [3 * units], weights of the cell in the gates i, f and o
};

/// An activation function.
using Nonlinearity = std::function<Tensor(const Tensor&)>;

/// Options of a run over a sequence.
struct RecurrentRun {
  Tensor initial_state = {};               // [batch, units]; zeros by default
  Tensor initial_cell = {};                // LSTM: [batch, units]; zeros by default
  Tensor sequence_lengths = {};            // integers [batch]: later time steps keep the state and give zeros
  Tensor mask = {};                        // bool [time, batch]: masked time steps keep the state and repeat the result
  bool reverse = false;                    // from the last time step to the first; results stay at their time steps
  double clip = 0;                         // > 0: inputs of activations are clipped to [-clip, clip]
  Nonlinearity activation = {};            // of the new state (LSTM: of the candidate c); tanh by default
  Nonlinearity recurrent_activation = {};  // activation of the gates; sigmoid by default
  Nonlinearity cell_activation = {};       // LSTM: of the cell within the state; tanh by default
  bool reset_after = true;                 // GRU: the gate r applies after the recurrent product (linear_before_reset)
  bool couple_input_forget = false;        // LSTM: f = 1 - i
};

/// Result of a run over a sequence.
struct RecurrentResult {
  Tensor sequence;     // the state after each time step, [time, batch, units]
  Tensor state, cell;  // after the last time step; only an LSTM has a cell
};

/// Elman network: h' = activation(x kernel + bias + h recurrent_kernel + recurrent_bias). x: [time, batch, inputs].
RecurrentResult simple_rnn(const Tensor& x, const RecurrentWeights& weights, const RecurrentRun& options = {});
/// Gated recurrent unit: h' = z h + (1 - z) h~ (Cho et al. 2014). x: [time, batch, inputs].
RecurrentResult gru(const Tensor& x, const RecurrentWeights& weights, const RecurrentRun& options = {});
/// Long short-term memory: c' = f c + i c~, h' = o cell_activation(c') (Hochreiter and Schmidhuber 1997). x: [time,
/// batch, inputs].
RecurrentResult lstm(const Tensor& x, const RecurrentWeights& weights, const RecurrentRun& options = {});

}  // namespace gradus
