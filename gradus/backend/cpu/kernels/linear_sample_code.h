/// Samples, compiled for an instruction set whose floor is one instruction. Each sum has the order and the roundings of
/// the definition (ops/sample_ops.cpp).
#pragma once
#include "gradus/backend/cpu/kernels/linear_sample.h"

namespace gradus::library {
namespace {

constexpr std::int64_t block = 64;  // places whose neighbours are found together, by vectors

/// The neighbours of some places along one axis: the position of the first one, their indices, and the weight of the
/// second one.
template <class T> struct Neighbours {
  T below[block], part[block];
  std::int32_t low[block], high[block];
};

float floor_of(float x) { return __builtin_floorf(x); }
double floor_of(double x) { return __builtin_floor(x); }

/// The largest number of the type that an index may be made of.
template <class T> constexpr T largest_index = sizeof(T) == 4 ? T(2147483520) : T(2147483647);

/// NaN: 0, which a weight of NaN meets. The index is bounded as an integer: a float may not hold that of the last row.
template <class T> std::int32_t index_of(T x, std::int32_t last) {
  const T positive = x > 0 ? x : T(0);
  const auto index = static_cast<std::int32_t>(positive < largest_index<T> ? positive : largest_index<T>);
  return index < last ? index : last;
}

template <class T> void find_neighbours(const T* positions, std::int64_t count, std::int64_t n, Neighbours<T>& found) {
  const auto last = static_cast<std::int32_t>(n - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const T at = positions[i], below = floor_of(at), above = below + 1;
    found.below[i] = below;
    found.part[i] = at - below;
    found.low[i] = index_of(below, last);
    found.high[i] = index_of(above, last);
  }
}

/// `fixed`: the number of channels, if it is known; 0: `given`.
template <class T, int fixed> void add_all(const T* const (&from)[4], const T (&w)[4], std::int64_t given, T* y) {
  const std::int64_t channels = fixed > 0 ? fixed : given;
  for (std::int64_t k = 0; k < channels; ++k)
    y[k] = from[0][k] * w[0] + from[1][k] * w[1] + from[2][k] * w[2] + from[3][k] * w[3];
}

/// Do the neighbours at `below` and behind it lie within an axis?
template <class T> struct Within {
  Within(T below, std::int64_t n) {
    const double last = static_cast<double>(n - 1);
    const T above = below + 1;
    low = below >= 0 && below <= last;
    high = above >= 0 && above <= last;
  }
  bool low, high;
};

/// Some of the four neighbours count as 0.
template <class T>
void add_some(const T* const (&from)[4], const T (&w)[4], const bool (&counts)[4], std::int64_t channels, T* y) {
  for (std::int64_t k = 0; k < channels; ++k) {
    T sum = counts[0] ? from[0][k] * w[0] : T(0);
    for (int j = 1; j < 4; ++j) sum = sum + (counts[j] ? from[j][k] * w[j] : T(0));
    y[k] = sum;
  }
}

template <class T, int fixed>
void sample_block(const SampledImage<T>& image, const Neighbours<T>& rows, const Neighbours<T>& columns,
                  std::int64_t count, T* y) {
  const std::int64_t channels = fixed > 0 ? fixed : image.channels;
  for (std::int64_t i = 0; i < count; ++i, y += channels) {
    const T* const upper = image.pixels + rows.low[i] * image.width * channels;
    const T* const lower = image.pixels + rows.high[i] * image.width * channels;
    const std::int64_t left = columns.low[i] * channels, right = columns.high[i] * channels;
    const T down = rows.part[i], across = columns.part[i], up = 1 - down, back = 1 - across;
    const T weights[4] = {up * back, up * across, down * back, down * across};
    const T* const from[4] = {upper + left, upper + right, lower + left, lower + right};
    if (!image.zeros) {
      add_all<T, fixed>(from, weights, channels, y);
      continue;
    }
    const Within<T> row(rows.below[i], image.height), column(columns.below[i], image.width);
    if (row.low && row.high && column.low && column.high) add_all<T, fixed>(from, weights, channels, y);
    else
      add_some<T>(from, weights,
                  {row.low && column.low, row.low && column.high, row.high && column.low, row.high && column.high},
                  channels, y);
  }
}

}  // namespace

template <class T>
void sample_places(const SampledImage<T>& image, const T* rows, const T* columns, std::int64_t count, T* y) {
  Neighbours<T> of_rows, of_columns;
  for (std::int64_t done = 0; done < count; done += block) {
    const std::int64_t some = count - done < block ? count - done : block;
    find_neighbours(rows + done, some, image.height, of_rows);
    find_neighbours(columns + done, some, image.width, of_columns);
    T* const to = y + done * image.channels;
    switch (image.channels) {
      case 1: sample_block<T, 1>(image, of_rows, of_columns, some, to); break;
      case 3: sample_block<T, 3>(image, of_rows, of_columns, some, to); break;
      case 4: sample_block<T, 4>(image, of_rows, of_columns, some, to); break;
      default: sample_block<T, 0>(image, of_rows, of_columns, some, to);
    }
  }
}

template void sample_places(const SampledImage<float>&, const float*, const float*, std::int64_t, float*);
template void sample_places(const SampledImage<double>&, const double*, const double*, std::int64_t, double*);

}  // namespace gradus::library
