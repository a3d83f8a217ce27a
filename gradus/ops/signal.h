/// Discrete Fourier transforms of real and complex signals, windows, and the mel scale. Complex numbers are a last
/// dimension of 2: real and imaginary part. A last dimension of 1 is real.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of dft.
struct DftOptions {
  int axis = -2;                // axis of the signal, never the last
  std::int64_t dft_length = 0;  // the signal is cut or zero-padded to it; 0: its own length
  bool inverse = false;         // inverse transform, divided by the length
  bool onesided = false;        // only the half that real signals have: of the result, or of the inverse's input
};

/// Discrete Fourier transform: y_k = sum_t x_t exp(-2 pi i k t / m). x: [..., n, ..., 1 or 2], the signal along `axis`
/// (never the last) -> [..., m, ..., 2]. onesided gives the first m / 2 + 1 of a real signal (last dimension 1). With
/// inverse, x holds those and the result is the real signal [..., m, ..., 1], m = 2 (n - 1) by default. Floats; n must
/// be known. As ONNX's DFT.
Tensor dft(const Tensor& x, DftOptions options = {});

/// Options of stft.
struct StftOptions {
  std::int64_t frame_step = 1;    // distance between the begins of frames, in elements
  std::int64_t frame_length = 0;  // 0: the length of the window, or of the signal
  Tensor window = {};             // [frame_length]; empty: ones
  bool onesided = true;           // only the first half of the spectrum, for real signals
};

/// Short-time Fourier transform of each frame that lies within the signal, times the window. signal: [batch, n, 1 or 2]
/// -> [batch, frames, frame_length / 2 + 1 (or frame_length), 2]. As ONNX's STFT.
Tensor stft(const Tensor& signal, StftOptions options);

/// Options of windows.
struct SignalWindowOptions {
  bool periodic = true;  // periodic, for spectra; false: symmetric, for filters
  DType dtype = f32;     // a floating type
};

/// Hann window [n]: 0.5 - 0.5 cos(2 pi i / n).
Tensor hann_window(std::int64_t n, SignalWindowOptions options = {});
/// Hamming window [n]: 0.54 - 0.46 cos(2 pi i / n).
Tensor hamming_window(std::int64_t n, SignalWindowOptions options = {});
/// Blackman window [n]: 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).
Tensor blackman_window(std::int64_t n, SignalWindowOptions options = {});
/// Cosine-sum window [n]: a_0 - a_1 cos(2 pi i / n) + a_2 cos(4 pi i / n) - ...
Tensor cosine_window(std::int64_t n, const std::vector<double>& a, SignalWindowOptions options = {});

/// Triangles on the mel scale: a matrix [dft_length / 2 + 1, num_mel_bins] that takes a onesided spectrum to mel bins.
/// Edges are in hertz. As ONNX's MelWeightMatrix.
Tensor mel_weight_matrix(std::int64_t num_mel_bins, std::int64_t dft_length, std::int64_t sample_rate,
                         double lower_edge_hertz, double upper_edge_hertz, DType dtype = f32);

}  // namespace gradus
