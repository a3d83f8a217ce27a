/// Bilinear samples of one image. The arithmetic is compiled for AVX2 or NEON, whose floor is one instruction; plain
/// loops, so every processor gives the same bits.
#pragma once
#include <cstdint>

namespace gradus::library {

/// An image [height, width, channels] that is sampled; with `zeros` neighbours beyond it count as 0.
template <class T> struct SampledImage {
  const T* pixels;
  std::int64_t height, width, channels;
  bool zeros;
};

/// y[i, :] for the `count` places (rows[i], columns[i]). T: float, double.
template <class T>
void sample_places(const SampledImage<T>& image, const T* rows, const T* columns, std::int64_t count, T* y);

}  // namespace gradus::library
