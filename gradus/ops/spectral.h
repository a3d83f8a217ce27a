/// Cosine transforms, Fourier transforms under TensorFlow's names, frames of signals, and further windows. A complex
/// number is a last dimension of 2, as in gradus/ops/signal.h. Floats; lengths must be known.
#pragma once
#include <optional>
#include <string>
#include "gradus/ops/signal.h"

namespace gradus {

struct DctOptions {
  int type = 2;           // 1 to 4
  std::int64_t n = 0;     // the signal is cut or filled with zeros to it; 0: its own length
  std::string norm = {};  // "ortho": times what makes the transform orthogonal (types 2 to 4)
};
/// x: [..., n] -> [..., n], along the last axis. Type 1: y_k = x_0 + (-1)^k x_(n-1) + 2 sum x_t cos(pi t k / (n-1));
/// 2: 2 sum x_t cos(pi k (2t+1) / 2n); 3: x_0 + 2 sum x_t cos(pi t (2k+1) / 2n); 4: 2 sum x_t cos(pi (2k+1) (2t+1) /
/// 4n).
Tensor dct(const Tensor& x, DctOptions options = {});
/// The transform that undoes it: type 3 for 2 and back; without "ortho" not divided, as in TensorFlow.
Tensor idct(const Tensor& x, DctOptions options = {});

/// [..., n, 1 or 2] -> [..., n, 2], and back (divided by n).
Tensor fft(const Tensor& x);
Tensor ifft(const Tensor& x);
/// x: real [..., n] -> [..., fft_length / 2 + 1, 2]. fft_length 0: n.
Tensor rfft(const Tensor& x, std::int64_t fft_length = 0);
/// x: [..., m, 2] -> real [..., fft_length], 2 (m - 1) unless said.
Tensor irfft(const Tensor& x, std::int64_t fft_length = 0);
/// Frequency 0 in the middle along `axis` (none: all), and back.
Tensor fftshift(const Tensor& x, const std::vector<int>& axis = {});
Tensor ifftshift(const Tensor& x, const std::vector<int>& axis = {});

struct FrameOptions {
  bool pad_end = false;  // frames begin at every step; beyond the end stands pad_value
  double pad_value = 0;
  int axis = -1;
};
/// The axis becomes two, [frames, frame_length]: pieces of the signal that begin every `frame_step` elements. Any
/// number type.
Tensor frame(const Tensor& signal, std::int64_t frame_length, std::int64_t frame_step, FrameOptions options = {});
/// [..., frames, frame_length] -> [..., (frames - 1) frame_step + frame_length]: the sum of frames in their places. Any
/// number type.
Tensor overlap_and_add(const Tensor& signal, std::int64_t frame_step);

/// [n]: I_0(beta sqrt(1 - (2i / (n-1) - 1)^2)) / I_0(beta)
Tensor kaiser_window(std::int64_t n, double beta = 12, DType dtype = f32);
/// [n], n even: square roots of running sums of a Kaiser window, and their mirror image.
Tensor kaiser_bessel_derived_window(std::int64_t n, double beta = 12, DType dtype = f32);
/// [n]: sin(pi / 2 sin^2(pi (i + 1/2) / n))
Tensor vorbis_window(std::int64_t n, DType dtype = f32);

struct LinearToMelOptions {
  std::int64_t num_mel_bins = 20, num_spectrogram_bins = 129;
  double sample_rate = 8000, lower_edge_hertz = 125, upper_edge_hertz = 3800;
  DType dtype = f32;
};
/// [num_spectrogram_bins, num_mel_bins]: triangles that are linear in mel; `mel_weight_matrix` has ONNX's, linear in
/// bins.
Tensor linear_to_mel_weight_matrix(LinearToMelOptions options = {});
/// [..., num_mel_bins] -> the same: cepstral coefficients, dct / sqrt(2 num_mel_bins).
Tensor mfccs_from_log_mel_spectrograms(const Tensor& log_mel_spectrograms);

}  // namespace gradus
