/// Arithmetic of depthwise convolutions, compiled for each instruction set (vector_bytes.h). Each channel has a lane of
/// its own, so the bits do not depend on the vectors' length.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#include "gradus/backend/cpu/kernels/depthwise_channels.h"
#include "gradus/backend/cpu/kernels/vector_bytes.h"

namespace gradus::library::depthwise {
namespace {

template <class E, int bytes> struct Vector {
  typedef E type __attribute__((vector_size(bytes), aligned(alignof(E)), may_alias));
  static constexpr std::int64_t lanes = bytes / sizeof(E);
};

/// The element type is named, since a deduced vector type forgets that it lies anywhere.
template <class E, int bytes>
[[gnu::always_inline]] inline void add_product(typename Vector<E, bytes>::type& sum,
                                               const typename Vector<E, bytes>::type& a,
                                               const typename Vector<E, bytes>::type& b) {
  using V = typename Vector<E, bytes>::type;
  constexpr bool is_float = std::is_same_v<E, float>;
  if constexpr (!is_float && !std::is_same_v<E, double>) sum = a * b + sum;
#ifdef __AVX512F__
  else if constexpr (bytes == 64 && is_float) sum = V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(sum)));
  else if constexpr (bytes == 64) sum = V(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(sum)));
#endif
#ifdef __AVX2__
  else if constexpr (is_float) sum = V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
  else sum = V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(sum)));
#else
  else if constexpr (is_float) sum = V(vfmaq_f32(float32x4_t(sum), float32x4_t(a), float32x4_t(b)));
  else sum = V(vfmaq_f64(float64x2_t(sum), float64x2_t(a), float64x2_t(b)));
#endif
}

template <class E> [[gnu::always_inline]] inline void add_single(E& sum, E a, E b) {
  if constexpr (std::is_same_v<E, float>) sum = __builtin_fmaf(a, b, sum);
  else if constexpr (std::is_same_v<E, double>) sum = __builtin_fma(a, b, sum);
  else sum += a * b;
}

/// `targets` neighbours x `vectors` of channels from `channel` on.
template <class E, int bytes, int targets, int vectors>
void sum_block(const SharedTaps<E>& run, std::int64_t x_offset, std::int64_t channel, E* y) {
  using V = typename Vector<E, bytes>::type;
  constexpr std::int64_t lanes = Vector<E, bytes>::lanes;
  V sums[std::size_t{targets}][std::size_t{vectors}] = {};
  for (std::int64_t t = 0; t < run.count; ++t) {
    const E* x = run.taps[t].x + x_offset + channel;
    const E* w = run.taps[t].w + channel;
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m) {
      const V weight = *reinterpret_cast<const V*>(w + m * lanes);
#pragma GCC unroll 4
      for (int j = 0; j < targets; ++j)
        add_product<E, bytes>(sums[j][m], *reinterpret_cast<const V*>(x + j * run.x_step + m * lanes), weight);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < targets; ++j)
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m) *reinterpret_cast<V*>(y + j * run.y_step + channel + m * lanes) = sums[j][m];
}

/// Blocks of `width` channels, from `channel` on; gives the first channel that is left.
template <class E, int bytes, int targets, int vectors>
std::int64_t sum_blocks(const SharedTaps<E>& run, std::int64_t x_offset, std::int64_t channel, std::int64_t channels,
                        E* y) {
  constexpr std::int64_t width = vectors * Vector<E, bytes>::lanes;
  for (; channel + width <= channels; channel += width)
    sum_block<E, bytes, targets, vectors>(run, x_offset, channel, y);
  return channel;
}

/// Eight sums at once, more than a multiplication takes cycles; of one target four.
template <class E, int targets>
void sum_targets(const SharedTaps<E>& run, std::int64_t at, std::int64_t channels, E* y) {
  constexpr int vectors = targets == 4 ? 2 : 4;
  const std::int64_t x_offset = at * run.x_step;
  y += at * run.y_step;
  std::int64_t c = sum_blocks<E, vector_bytes, targets, vectors>(run, x_offset, 0, channels, y);
  c = sum_blocks<E, vector_bytes, targets, 1>(run, x_offset, c, channels, y);
  if constexpr (vector_bytes > 32) c = sum_blocks<E, 32, targets, 1>(run, x_offset, c, channels, y);
  for (; c < channels; ++c)
    for (int j = 0; j < targets; ++j) {
      E sum{};
      for (std::int64_t t = 0; t < run.count; ++t)
        add_single(sum, run.taps[t].x[x_offset + j * run.x_step + c], run.taps[t].w[c]);
      y[j * run.y_step + c] = sum;
    }
}

[[gnu::always_inline]] inline bool reads(const TapReach& reach, int k, std::int64_t window) {
  return window >= reach.begin[k] && window < reach.end[k];
}

/// The sums of `rows` by `taps` neighbours among the taps, for a vector of channels.
template <class E, int bytes, int rows, int taps> struct TapSums {
  using V = typename Vector<E, bytes>::type;
  V sums[std::size_t{rows}][std::size_t{taps}];

  [[gnu::always_inline]] inline void load(const E* dw, std::int64_t row, std::int64_t tap) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < taps; ++k) sums[r][k] = *reinterpret_cast<const V*>(dw + r * row + k * tap);
  }
  [[gnu::always_inline]] inline void store(E* dw, std::int64_t row, std::int64_t tap) const {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < taps; ++k) *reinterpret_cast<V*>(dw + r * row + k * tap) = sums[r][k];
  }

  /// Adds the products of taps [tap, past) for window i.
  template <int first, int last, int tap, int past>
  [[gnu::always_inline]] inline void add_window(const LineTaps<E>& line, const TapReach& reach, std::int64_t channels,
                                                std::int64_t channel, std::int64_t i) {
    const V dy = *reinterpret_cast<const V*>(line.dy + i * channels + channel);
    const std::int64_t at = i * reach.scale * channels + channel;
#pragma GCC unroll 4
    for (int r = first; r < last; ++r)
#pragma GCC unroll 4
      for (int k = tap; k < past; ++k)
        add_product<E, bytes>(sums[r][k], *reinterpret_cast<const V*>(line.x[r] + at + reach.shift[k] * channels), dy);
  }
  /// Windows [begin, end), for which not every tap reads something. Most often that is one window at either end, and
  /// one tap.
  template <int first, int last>
  [[gnu::always_inline]] inline void add_edge(const LineTaps<E>& line, const TapReach& reach, std::int64_t channels,
                                              std::int64_t channel, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (taps == 3) {
        const bool reads_0 = reads(reach, 0, i), reads_2 = reads(reach, 2, i);
        if (reads(reach, 1, i) && reads_0 != reads_2) {
          if (reads_2) add_window<first, last, 1, 3>(line, reach, channels, channel, i);
          else add_window<first, last, 0, 2>(line, reach, channels, channel, i);
          continue;
        }
      }
      if (reads(reach, 0, i)) add_window<first, last, 0, 1>(line, reach, channels, channel, i);
      if constexpr (taps > 1)
        if (reads(reach, 1, i)) add_window<first, last, 1, 2>(line, reach, channels, channel, i);
      if constexpr (taps > 2)
        if (reads(reach, 2, i)) add_window<first, last, 2, 3>(line, reach, channels, channel, i);
    }
  }

  /// Adds up a line, for rows [first, last) of taps, each of which reads an element.
  template <int first, int last>
  [[gnu::always_inline]] inline void add_line(const LineTaps<E>& line, const TapReach& reach, std::int64_t channels,
                                              std::int64_t channel) {
    add_edge<first, last>(line, reach, channels, channel, reach.first, reach.all_begin);
    if (reach.all_begin == reach.all_end) return;
    const E *dy = line.dy + reach.all_begin * channels + channel, *end = line.dy + reach.all_end * channels + channel;
    const E* x[std::size_t{rows}];
#pragma GCC unroll 4
    for (int r = first; r < last; ++r)
      x[r] = line.x[r] + (reach.all_begin * reach.scale + reach.shift[0]) * channels + channel;
    const std::int64_t tap = (taps > 1 ? reach.shift[1] - reach.shift[0] : 0) * channels, step = reach.scale * channels;
    for (; dy < end; dy += channels) {
      const V d = *reinterpret_cast<const V*>(dy);
#pragma GCC unroll 4
      for (int r = first; r < last; ++r) {
#pragma GCC unroll 4
        for (int k = 0; k < taps; ++k)
          add_product<E, bytes>(sums[r][k], *reinterpret_cast<const V*>(x[r] + k * tap), d);
        x[r] += step;
      }
    }
    add_edge<first, last>(line, reach, channels, channel, reach.all_end, reach.last);
  }
};

/// Lines of windows.
template <class E> struct Lines {
  const LineTaps<E>* first;
  const LineTaps<E>* last;
};

/// Vectors of channels from `channel` on; the first channel that is left.
template <class E, int bytes, int rows, int taps>
std::int64_t add_vectors(const Lines<E>& lines, const TapReach& reach, const ChannelRange& c, std::int64_t channel,
                         std::int64_t row, E* dw) {
  const std::int64_t channels = c.all;
  constexpr std::int64_t lanes = Vector<E, bytes>::lanes;
  for (; channel + lanes <= c.last; channel += lanes) {
    TapSums<E, bytes, rows, taps> sums;
    sums.load(dw + channel, row, channels);
    for (const LineTaps<E>* line = lines.first; line != lines.last; ++line) {
      if constexpr (rows == 1) sums.template add_line<0, 1>(*line, reach, channels, channel);
      else if (!line->x[0]) sums.template add_line<1, rows>(*line, reach, channels, channel);
      else if (!line->x[rows - 1]) sums.template add_line<0, rows - 1>(*line, reach, channels, channel);
      else sums.template add_line<0, rows>(*line, reach, channels, channel);
    }
    sums.store(dw + channel, row, channels);
  }
  return channel;
}

template <class E, int rows, int taps>
void add_channel(const Lines<E>& lines, const TapReach& reach, std::int64_t channels, std::int64_t channel,
                 std::int64_t row, E* dw) {
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < taps; ++k) {
      E sum = dw[r * row + k * channels + channel];
      for (const LineTaps<E>* line = lines.first; line != lines.last; ++line) {
        if (!line->x[r]) continue;
        for (std::int64_t i = reach.begin[k]; i < reach.end[k]; ++i)
          add_single(sum, line->x[r][(reach.shift[k] + i * reach.scale) * channels + channel],
                     line->dy[i * channels + channel]);
      }
      dw[r * row + k * channels + channel] = sum;
    }
}

template <class E, int rows, int taps>
void add_lines(const LineTaps<E>* first, std::size_t count, const TapReach& reach, const ChannelRange& c,
               std::int64_t row, E* dw) {
  const Lines<E> lines{first, first + count};
  std::int64_t channel = add_vectors<E, vector_bytes, rows, taps>(lines, reach, c, c.first, row, dw);
  if constexpr (vector_bytes > 32) channel = add_vectors<E, 32, rows, taps>(lines, reach, c, channel, row, dw);
  for (; channel < c.last; ++channel) add_channel<E, rows, taps>(lines, reach, c.all, channel, row, dw);
}

template <class E>
constexpr ChannelFunctions<E> functions{.sum_four = sum_targets<E, 4>,
                                        .sum_two = sum_targets<E, 2>,
                                        .sum_one = sum_targets<E, 1>,
                                        .add_lines = {{add_lines<E, 1, 1>, add_lines<E, 1, 2>, add_lines<E, 1, 3>},
                                                      {add_lines<E, 2, 1>, add_lines<E, 2, 2>, add_lines<E, 2, 3>},
                                                      {add_lines<E, 3, 1>, add_lines<E, 3, 2>, add_lines<E, 3, 3>}}};

}  // namespace
}  // namespace gradus::library::depthwise
