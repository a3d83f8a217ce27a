/// Cosine transforms, Fourier transforms under TensorFlow's names, frames of signals, and further windows. Complex
/// numbers are a last dimension of 2, as in gradus/ops/signal.h. Floats; lengths must be known.
#pragma once
#include <optional>
#include <string>
#include "gradus/ops/named_axis.h"
#include "gradus/ops/signal.h"

namespace gradus {

/// Options of dct and idct.
struct DctOptions {
  int type = 2;           // 1 to 4
  std::int64_t n = 0;     // the signal is cut or zero-padded to it; 0: its own length
  std::string norm = {};  // "ortho": scaled to an orthogonal transform (types 2 to 4)
};
/// Discrete cosine transform, x: [..., n] -> [..., n], along the last axis.
/// Type 1: y_k = x_0 + (-1)^k x_(n-1) + 2 sum x_t cos(pi t k / (n-1)).
/// Type 2: y_k = 2 sum x_t cos(pi k (2t+1) / 2n).
/// Type 3: y_k = x_0 + 2 sum x_t cos(pi t (2k+1) / 2n).
/// Type 4: y_k = 2 sum x_t cos(pi (2k+1) (2t+1) / 4n).
Tensor dct(const Tensor& x, DctOptions options = {});
/// Inverse cosine transform: type 3 for 2 and back. Without "ortho" it is not divided, as in TensorFlow.
Tensor idct(const Tensor& x, DctOptions options = {});

/// Fourier transform: [..., n, 1 or 2] -> [..., n, 2].
Tensor fft(const Tensor& x);
/// Inverse Fourier transform, divided by n: [..., n, 1 or 2] -> [..., n, 2].
Tensor ifft(const Tensor& x);
/// Fourier transform of a real signal: [..., n] -> [..., fft_length / 2 + 1, 2]. fft_length 0 stands for n.
Tensor rfft(const Tensor& x, std::int64_t fft_length = 0);
/// Inverse of rfft: [..., m, 2] -> real [..., fft_length], by default 2 (m - 1).
Tensor irfft(const Tensor& x, std::int64_t fft_length = 0);
/// Moves frequency 0 to the middle along `axis`; no axis means all.
Tensor fftshift(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor fftshift(const Tensor& x, const std::vector<int>& axis = {}) {
  return fftshift(x, NamedAxes{axis});
}
/// Inverse of fftshift.
Tensor ifftshift(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor ifftshift(const Tensor& x, const std::vector<int>& axis = {}) {
  return ifftshift(x, NamedAxes{axis});
}

/// Options of frame.
struct FrameOptions {
  bool pad_end = false;  // frames begin at every step, and are filled with pad_value beyond the end
  double pad_value = 0;  // fills frames beyond the end
  int axis = -1;         // axis of the signal
};
/// Splits the axis into [frames, frame_length]: pieces of the signal that begin every `frame_step` elements. Any number
/// type.
Tensor frame(const Tensor& signal, std::int64_t frame_length, std::int64_t frame_step, FrameOptions options = {});
/// Sum of overlapping frames, each begun frame_step after the one before: [..., frames, frame_length] -> [..., (frames
/// - 1) frame_step + frame_length]. Any number type.
Tensor overlap_and_add(const Tensor& signal, std::int64_t frame_step);

/// Kaiser window [n]: I_0(beta sqrt(1 - (2i / (n-1) - 1)^2)) / I_0(beta).
Tensor kaiser_window(std::int64_t n, double beta = 12, DType dtype = f32);
/// Kaiser-Bessel-derived window [n], n even: square roots of running sums of a Kaiser window, and their mirror image.
Tensor kaiser_bessel_derived_window(std::int64_t n, double beta = 12, DType dtype = f32);
/// Vorbis window [n]: sin(pi / 2 sin^2(pi (i + 1/2) / n)).
Tensor vorbis_window(std::int64_t n, DType dtype = f32);

/// Options of linear_to_mel_weight_matrix.
struct LinearToMelOptions {
  std::int64_t num_mel_bins = 20, num_spectrogram_bins = 129;                  // columns and rows of the matrix
  double sample_rate = 8000, lower_edge_hertz = 125, upper_edge_hertz = 3800;  // in hertz
  DType dtype = f32;                                                           // a floating type
};
/// Triangles that are linear in mel: [num_spectrogram_bins, num_mel_bins]. In contrast, `mel_weight_matrix` has ONNX's,
/// linear in bins.
Tensor linear_to_mel_weight_matrix(LinearToMelOptions options = {});
/// Mel-frequency cepstral coefficients, dct / sqrt(2 num_mel_bins): [..., num_mel_bins] -> the same shape.
Tensor mfccs_from_log_mel_spectrograms(const Tensor& log_mel_spectrograms);

}  // namespace gradus
