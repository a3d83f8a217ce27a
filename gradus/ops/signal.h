/// Discrete Fourier transforms of real and complex signals, windows, and the mel scale. A complex number is a last
/// dimension of 2: real and imaginary part; one of 1 is real.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

struct DftOptions {
  int axis = -2;
  std::int64_t dft_length = 0;  // the signal is cut or filled with zeros to it; 0: its own length
  bool inverse = false;         // divided by the length
  bool onesided = false;        // the half that real signals have: of the result, or of what the inverse is given
};

/// x: [..., n, ..., 1 or 2], the signal along `axis` (never the last) -> [..., m, ..., 2], y_k = sum_t x_t exp(-2 pi i
/// k t / m). onesided: the first m / 2 + 1 of a real signal (last dimension 1); with inverse, x holds those and the
/// result is the real signal [..., m, ..., 1], m = 2 (n - 1) unless said. Floats; n must be known. As ONNX's DFT.
Tensor dft(const Tensor& x, DftOptions options = {});

struct StftOptions {
  std::int64_t frame_step = 1;
  std::int64_t frame_length = 0;  // 0: that of the window, or of the signal
  Tensor window = {};             // [frame_length]; empty: ones
  bool onesided = true;           // of real signals
};

/// signal: [batch, n, 1 or 2] -> [batch, frames, frame_length / 2 + 1 (or frame_length), 2]: the transform of each
/// frame that lies within the signal, times the window. As ONNX's STFT.
Tensor stft(const Tensor& signal, StftOptions options);

struct SignalWindowOptions {
  bool periodic = true;  // for spectra; else symmetric, for filters
  DType dtype = f32;
};

/// [n]: 0.5 - 0.5 cos(2 pi i / n)
Tensor hann_window(std::int64_t n, SignalWindowOptions options = {});
/// [n]: 0.54 - 0.46 cos(2 pi i / n)
Tensor hamming_window(std::int64_t n, SignalWindowOptions options = {});
/// [n]: 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)
Tensor blackman_window(std::int64_t n, SignalWindowOptions options = {});
/// [n]: a_0 - a_1 cos(2 pi i / n) + a_2 cos(4 pi i / n) - ...
Tensor cosine_window(std::int64_t n, const std::vector<double>& a, SignalWindowOptions options = {});

/// [dft_length / 2 + 1, num_mel_bins]: triangles on the mel scale, by which a matrix product takes a onesided spectrum
/// to mel bins. As ONNX's MelWeightMatrix.
Tensor mel_weight_matrix(std::int64_t num_mel_bins, std::int64_t dft_length, std::int64_t sample_rate,
                         double lower_edge_hertz, double upper_edge_hertz, DType dtype = f32);

}  // namespace gradus
