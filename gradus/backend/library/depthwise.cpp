/// Convolutions whose groups have one channel each: a product would have rows of one element here. Channels are
/// neighbours in memory and make vectors; sums stay in registers over all taps, and for the weights over lines.
#include <immintrin.h>
#include <algorithm>
#include <type_traits>
#include "gradus/backend/library/convolution.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

/// Integers wrap around, as unsigned ones do.
template <class T> struct ComputedAs {
  using type = std::make_unsigned_t<T>;
};
template <> struct ComputedAs<float> {
  using type = float;
};
template <> struct ComputedAs<double> {
  using type = double;
};

template <class E> struct VectorOf {
  typedef E type __attribute__((vector_size(32), aligned(alignof(E)), may_alias));
};
template <class E> constexpr std::int64_t lanes_of = 32 / sizeof(E);

/// The element type is named, since a deduced vector type forgets that it lies anywhere.
template <class E>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_product(typename VectorOf<E>::type& sum,
                                                                        const typename VectorOf<E>::type& a,
                                                                        const typename VectorOf<E>::type& b) {
  using V = typename VectorOf<E>::type;
  if constexpr (std::is_same_v<E, float>) sum = V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
  else if constexpr (std::is_same_v<E, double>) sum = V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(sum)));
  else sum = a * b + sum;
}

template <class E> [[gnu::target("fma"), gnu::always_inline]] inline void add_single(E& sum, E a, E b) {
  if constexpr (std::is_same_v<E, float>) sum = __builtin_fmaf(a, b, sum);
  else if constexpr (std::is_same_v<E, double>) sum = __builtin_fma(a, b, sum);
  else sum += a * b;
}

template <class E> const E* pointer(const KernelArguments* arguments, int slot) {
  return static_cast<const E*>(arguments->slots[slot]);
}
template <class E> E* target_pointer(const KernelArguments* arguments, int slot) {
  return static_cast<E*>(arguments->slots[slot]);
}

// ---------------------------------------------------------------- targets from sources

/// The targets of one remainder by the divisor, cut where a tap begins or ends to give them anything.
void add_residue(const WindowAxis& axis, std::int64_t first, std::vector<ColumnRun>& runs) {
  const std::int64_t count = divide_up(axis.targets - first, axis.divisor), step = axis.divisor == 1 ? axis.scale : 1;
  struct Reach {
    std::int64_t tap, base, begin, end;
  };
  std::vector<Reach> reaches;
  std::vector<std::int64_t> cuts{0, count};
  for (std::int64_t k = 0; k < axis.taps; ++k) {
    const std::int64_t at = first * axis.scale + k * axis.tap + axis.offset;
    if (at % axis.divisor != 0) continue;
    const std::int64_t base = at / axis.divisor;
    const std::int64_t begin = std::min(count, base >= 0 ? 0 : divide_up(-base, step));
    const std::int64_t end = base >= axis.sources ? begin : std::min(count, divide_up(axis.sources - base, step));
    reaches.push_back({k, base, begin, std::max(begin, end)});
    cuts.push_back(begin);
    cuts.push_back(std::max(begin, end));
  }
  std::ranges::sort(cuts);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] == cuts[i + 1]) continue;
    ColumnRun run{first + cuts[i] * axis.divisor, axis.divisor, cuts[i + 1] - cuts[i], step, {}};
    for (const Reach& r : reaches)
      if (r.begin <= cuts[i] && r.end >= cuts[i + 1]) run.taps.push_back({r.tap, r.base + cuts[i] * step});
    runs.push_back(std::move(run));
  }
}

/// Where a tap reads for the first target of a run, and its weights.
template <class E> struct TapAt {
  const E *x, *w;
};

/// A run of targets that share their taps.
template <class E> struct SharedTaps {
  const TapAt<E>* taps;
  std::int64_t count;
  std::int64_t x_step, y_step;  // from one target to the next
};

/// `targets` neighbours x `vectors` of channels from `channel` on.
template <class E, int targets, int vectors>
[[gnu::target("avx2,fma")]] void sum_block(const SharedTaps<E>& run, std::int64_t x_offset, std::int64_t channel,
                                           E* y) {
  using V = typename VectorOf<E>::type;
  V sums[targets][vectors] = {};
  for (std::int64_t t = 0; t < run.count; ++t) {
    const E* x = run.taps[t].x + x_offset + channel;
    const E* w = run.taps[t].w + channel;
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m) {
      const V weight = *reinterpret_cast<const V*>(w + m * lanes_of<E>);
#pragma GCC unroll 4
      for (int j = 0; j < targets; ++j)
        add_product<E>(sums[j][m], *reinterpret_cast<const V*>(x + j * run.x_step + m * lanes_of<E>), weight);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < targets; ++j)
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m)
      *reinterpret_cast<V*>(y + j * run.y_step + channel + m * lanes_of<E>) = sums[j][m];
}

/// All channels of `targets` neighbours, the first of which is target `at` of the run: eight sums at once, more than a
/// multiplication takes cycles.
template <class E, int targets>
[[gnu::target("avx2,fma")]] void sum_targets(const SharedTaps<E>& run, std::int64_t at, std::int64_t channels, E* y) {
  constexpr int vectors = targets == 4 ? 2 : 4;
  const std::int64_t x_offset = at * run.x_step;
  y += at * run.y_step;
  std::int64_t c = 0;
  for (; c + vectors * lanes_of<E> <= channels; c += vectors * lanes_of<E>)
    sum_block<E, targets, vectors>(run, x_offset, c, y);
  for (; c + lanes_of<E> <= channels; c += lanes_of<E>) sum_block<E, targets, 1>(run, x_offset, c, y);
  for (; c < channels; ++c)
    for (int j = 0; j < targets; ++j) {
      E sum{};
      for (std::int64_t t = 0; t < run.count; ++t)
        add_single(sum, run.taps[t].x[x_offset + j * run.x_step + c], run.taps[t].w[c]);
      y[j * run.y_step + c] = sum;
    }
}

/// One line of targets; `taps` is room for all of a window.
template <class E>
void run_line(const ConvolutionCall& call, const E* example, const E* w, std::int64_t line, E* y, TapAt<E>* taps) {
  const auto& axes = call.axes;
  const std::int64_t channels = call.groups, t0 = line / axes[1].targets, t1 = line % axes[1].targets;
  for (const ColumnRun& columns : call.columns) {
    SharedTaps<E> run{taps, 0, columns.source_step * channels, columns.target_step * channels};
    for (std::int64_t k0 = 0; k0 < axes[0].taps; ++k0)
      for (std::int64_t k1 = 0; k1 < axes[1].taps; ++k1) {
        const std::int64_t s0 = axes[0].source(t0, k0), s1 = axes[1].source(t1, k1);
        if (s0 < 0 || s1 < 0) continue;
        const E* x = example + (s0 * axes[1].sources + s1) * axes[2].sources * channels;
        const E* row = w + (k0 * axes[1].taps + k1) * axes[2].taps * channels;
        for (const ColumnRun::Tap& tap : columns.taps)
          taps[run.count++] = {x + tap.source * channels, row + tap.number * channels};
      }
    E* first = y + columns.target * channels;
    std::int64_t at = 0;
    for (; at + 4 <= columns.count; at += 4) sum_targets<E, 4>(run, at, channels, first);
    for (; at + 2 <= columns.count; at += 2) sum_targets<E, 2>(run, at, channels, first);
    if (at < columns.count) sum_targets<E, 1>(run, at, channels, first);
  }
}

// ---------------------------------------------------------------- weights

constexpr std::int64_t channel_block = 16;      // a cache line of f32
constexpr std::int64_t most_lines = 32;         // that are walked together, and
constexpr std::int64_t lines_bytes = 24 << 10;  // what they may take: most of the first-level cache
constexpr std::int64_t enough_units = 16;

/// A line of windows and the line of elements that one row of taps reads there.
template <class E> struct LinePair {
  const E *x, *dy;
};

/// Up to three neighbours among the taps of a row: which windows each of them reads for, and where.
struct TapReach {
  std::int64_t begin[3], end[3], shift[3];
  std::int64_t scale = 1, all_begin = 0, all_end = 0;  // windows for which all of them read

  TapReach(const WindowAxis& axis, std::int64_t first, int count) : scale(axis.scale) {
    all_end = axis.targets;
    for (int k = 0; k < count; ++k) {
      const WindowAxis::Run run = axis.run(first + k);
      const std::int64_t none = run.count <= 0;
      begin[k] = none ? 0 : run.target;
      end[k] = none ? 0 : run.target + run.count;
      shift[k] = (first + k) * axis.tap + axis.offset;
      all_begin = std::max(all_begin, begin[k]);
      all_end = std::min(all_end, end[k]);
    }
    all_end = std::max(all_begin, all_end);
  }
};

/// Adds what `taps` neighbours get from these lines, for `vectors` of channels; windows in order for every tap.
template <class E, int taps, int vectors>
[[gnu::target("avx2,fma")]] void add_lines(std::span<const LinePair<E>> lines, const TapReach& reach,
                                           std::int64_t channels, std::int64_t channel, E* dw) {
  using V = typename VectorOf<E>::type;
  V sums[taps][vectors];
#pragma GCC unroll 4
  for (int k = 0; k < taps; ++k)
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m)
      sums[k][m] = *reinterpret_cast<const V*>(dw + k * channels + channel + m * lanes_of<E>);
  const std::int64_t step = reach.scale * channels;
  for (const LinePair<E>& line : lines) {
    const E *line_x = line.x + channel, *line_dy = line.dy + channel;
#pragma GCC unroll 4
    for (int k = 0; k < taps; ++k)  // on the left
      for (std::int64_t i = reach.begin[k]; i < std::min(reach.all_begin, reach.end[k]); ++i)
#pragma GCC unroll 4
        for (int m = 0; m < vectors; ++m)
          add_product<E>(sums[k][m],
                         *reinterpret_cast<const V*>(line_x + reach.shift[k] * channels + i * step + m * lanes_of<E>),
                         *reinterpret_cast<const V*>(line_dy + i * channels + m * lanes_of<E>));
    for (std::int64_t i = reach.all_begin; i < reach.all_end; ++i) {
      const E* dy = line_dy + i * channels;
#pragma GCC unroll 4
      for (int m = 0; m < vectors; ++m) {
        const V d = *reinterpret_cast<const V*>(dy + m * lanes_of<E>);
#pragma GCC unroll 4
        for (int k = 0; k < taps; ++k)
          add_product<E>(sums[k][m],
                         *reinterpret_cast<const V*>(line_x + reach.shift[k] * channels + i * step + m * lanes_of<E>),
                         d);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < taps; ++k)  // on the right
      for (std::int64_t i = std::max(reach.all_end, reach.begin[k]); i < reach.end[k]; ++i)
#pragma GCC unroll 4
        for (int m = 0; m < vectors; ++m)
          add_product<E>(sums[k][m],
                         *reinterpret_cast<const V*>(line_x + reach.shift[k] * channels + i * step + m * lanes_of<E>),
                         *reinterpret_cast<const V*>(line_dy + i * channels + m * lanes_of<E>));
  }
#pragma GCC unroll 4
  for (int k = 0; k < taps; ++k)
#pragma GCC unroll 4
    for (int m = 0; m < vectors; ++m) *reinterpret_cast<V*>(dw + k * channels + channel + m * lanes_of<E>) = sums[k][m];
}

template <class E>
[[gnu::target("fma")]] void add_lines_of_channel(std::span<const LinePair<E>> lines, const TapReach& reach, int taps,
                                                 std::int64_t channels, std::int64_t channel, E* dw) {
  for (int k = 0; k < taps; ++k) {
    E sum = dw[k * channels + channel];
    for (const LinePair<E>& line : lines)
      for (std::int64_t i = reach.begin[k]; i < reach.end[k]; ++i)
        add_single(sum, line.x[(reach.shift[k] + i * reach.scale) * channels + channel],
                   line.dy[i * channels + channel]);
    dw[k * channels + channel] = sum;
  }
}

/// Channels [first, last).
template <class E, int taps>
void add_lines_of(std::span<const LinePair<E>> lines, const TapReach& reach, std::int64_t channels, std::int64_t first,
                  std::int64_t last, E* dw) {
  std::int64_t c = first;
  for (; c + 2 * lanes_of<E> <= last; c += 2 * lanes_of<E>) add_lines<E, taps, 2>(lines, reach, channels, c, dw);
  for (; c + lanes_of<E> <= last; c += lanes_of<E>) add_lines<E, taps, 1>(lines, reach, channels, c, dw);
  for (; c < last; ++c) add_lines_of_channel<E>(lines, reach, taps, channels, c, dw);
}

/// The chains of channels [first, last) for the rows of taps [row, last_row), along examples and windows.
template <class E> class WeightSums {
 public:
  WeightSums(const KernelArguments* arguments, const KernelConvolutionCall& call)
      : call_(call),
        axes_(call.axes),
        x_(pointer<E>(arguments, call.elements)),
        dy_(pointer<E>(arguments, call.windows)),
        dw_(target_pointer<E>(arguments, call.target)),
        channels_(call.groups) {}

  void run(std::int64_t row, std::int64_t last_row, std::int64_t first, std::int64_t last) {
    for (std::int64_t tap = row * axes_[2].taps; tap < last_row * axes_[2].taps; ++tap)
      std::fill(dw_ + tap * channels_ + first, dw_ + tap * channels_ + last, E{});
    const std::int64_t lines = call_.examples * lines_of(axes_);
    const std::int64_t bytes =
        (axes_[2].targets + axes_[2].sources) * (last - first) * static_cast<std::int64_t>(sizeof(E));
    const std::int64_t at_once =
        std::clamp<std::int64_t>(lines_bytes / std::max<std::int64_t>(1, bytes), 1, most_lines);
    for (std::int64_t begin = 0; begin < lines; begin += at_once)
      for (std::int64_t r = row; r < last_row; ++r) add_row(r, begin, std::min(lines, begin + at_once), first, last);
  }

 private:
  void add_row(std::int64_t row, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) {
    LinePair<E> pairs[most_lines];
    std::size_t count = 0;
    const std::int64_t of_example = lines_of(axes_), k0 = row / axes_[1].taps, k1 = row % axes_[1].taps;
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t line = at % of_example, s0 = axes_[0].source(line / axes_[1].targets, k0),
                         s1 = axes_[1].source(line % axes_[1].targets, k1);
      if (s0 < 0 || s1 < 0) continue;
      const std::int64_t source = (at / of_example * axes_[0].sources + s0) * axes_[1].sources + s1;
      pairs[count++] = {x_ + source * axes_[2].sources * channels_, dy_ + at * axes_[2].targets * channels_};
    }
    const std::span<const LinePair<E>> lines(pairs, count);
    for (std::int64_t k = 0; k < axes_[2].taps; k += 3) {
      const int taps = static_cast<int>(std::min<std::int64_t>(3, axes_[2].taps - k));
      const TapReach reach(axes_[2], k, taps);
      E* dw = dw_ + (row * axes_[2].taps + k) * channels_;
      if (taps == 3) add_lines_of<E, 3>(lines, reach, channels_, first, last, dw);
      else if (taps == 2) add_lines_of<E, 2>(lines, reach, channels_, first, last, dw);
      else add_lines_of<E, 1>(lines, reach, channels_, first, last, dw);
    }
  }

  const KernelConvolutionCall& call_;
  const WindowAxes& axes_;
  const E *x_, *dy_;
  E* dw_;
  const std::int64_t channels_;
};

std::int64_t rows_of_taps(const WindowAxes& axes) { return axes[0].taps * axes[1].taps; }
std::int64_t channel_blocks(const KernelConvolutionCall& call) { return divide_up(call.groups, channel_block); }
/// Few channels: rows of taps are units of their own.
bool divides_rows(const KernelConvolutionCall& call) { return channel_blocks(call) < enough_units; }

}  // namespace

bool is_depthwise(const ConvolutionCall& call) {
  return call.groups > 1 && call.source_channels == call.groups && call.target_channels == call.groups;
}

BoundThunk bind_depthwise(ConvolutionCall& call) {
  const std::int64_t targets = call.examples * targets_of(call.axes) * call.groups, taps = taps_of(call.axes);
  const WindowAxis& axis = call.axes[2];
  for (std::int64_t first = 0; first < std::min(axis.divisor, axis.targets); ++first)
    add_residue(axis, first, call.columns);
  BoundThunk bound{.extent = targets == 0 ? 0 : call.examples * lines_of(call.axes)};
  bound.bytes = call.bytes();
  bound.flops = 2 * targets * taps;
  bound.worker_scratch = taps * static_cast<std::int64_t>(sizeof(TapAt<float>));
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  with_convolved_type(call.dtype, [&]<class T>(T) {
    using E = typename ComputedAs<T>::type;
    const std::int64_t channels = call.groups, lines = lines_of(call.axes);
    for (std::int64_t at = begin; at < end; ++at)
      run_line<E>(call, pointer<E>(arguments, call.source) + at / lines * sources_of(call.axes) * channels,
                  pointer<E>(arguments, call.weights), at % lines,
                  target_pointer<E>(arguments, call.target) + at * call.axes[2].targets * channels,
                  static_cast<TapAt<E>*>(arguments->scratch));
  });
}

bool is_depthwise(const KernelConvolutionCall& call) {
  return call.groups > 1 && call.element_channels == call.groups && call.window_channels == call.groups;
}

BoundThunk bind_depthwise(const KernelConvolutionCall& call) {
  BoundThunk bound{.extent = channel_blocks(call) * (divides_rows(call) ? rows_of_taps(call.axes) : 1)};
  bound.bytes = call.bytes();
  bound.flops = call.flops();
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t rows = rows_of_taps(call.axes), channels = call.groups;
  const auto channel = [&](std::int64_t block) { return std::min(channels, block * channel_block); };
  with_convolved_type(call.dtype, [&]<class T>(T) {
    WeightSums<typename ComputedAs<T>::type> sums(arguments, call);
    if (!divides_rows(call)) return sums.run(0, rows, channel(begin), channel(end));
    while (begin < end) {  // as many whole blocks of channels as there are, and the parts of blocks beside them
      const std::int64_t block = begin / rows, row = begin % rows;
      const std::int64_t blocks = row == 0 ? (end - begin) / rows : 0;
      const std::int64_t last = blocks > 0 ? rows : std::min(rows, row + end - begin);
      sums.run(row, last, channel(block), channel(block + std::max<std::int64_t>(1, blocks)));
      begin += blocks > 0 ? blocks * rows : last - row;
    }
  });
}

}  // namespace gradus::library
