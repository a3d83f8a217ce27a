/// Gradients of depthwise convolutions by their weights. Sums of three by three taps stay in registers over the lines
/// of a block: each window is then read once for all of them, and what they read of the elements comes from the
/// first-level cache.
#include <algorithm>
#include <span>
#include "gradus/backend/library/channel_vectors.h"
#include "gradus/backend/library/convolution.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

constexpr std::int64_t channel_block = 16;      // a cache line of f32
constexpr std::int64_t most_lines = 32;         // that are walked together, and
constexpr std::int64_t lines_bytes = 32 << 10;  // what they may take: the first-level cache
constexpr std::int64_t enough_units = 16;
constexpr std::int64_t most_taps = 3;  // of a row, and rows of them: nine sums, more than a multiplication takes cycles

/// A line of windows, and the line of elements that each row of taps reads there; null: none.
template <class E> struct LineTaps {
  const E* dy;
  const E* x[most_taps];
};

/// Channels [first, last).
struct ChannelRange {
  std::int64_t all, first, last;
};

/// Up to three neighbours among the taps of a row: which windows each of them reads for, and where.
struct TapReach {
  std::int64_t begin[most_taps], end[most_taps], shift[most_taps];
  std::int64_t scale = 1, all_begin = 0, all_end = 0;  // windows for which all of them read
  std::int64_t first = 0, last = 0;                    // and any

  TapReach(const WindowAxis& axis, std::int64_t tap, std::int64_t count) : scale(axis.scale) {
    all_end = first = axis.targets;
    for (std::int64_t k = 0; k < count; ++k) {
      const WindowAxis::Run run = axis.run(tap + k);
      const bool none = run.count <= 0;
      begin[k] = none ? 0 : run.target;
      end[k] = none ? 0 : run.target + run.count;
      shift[k] = (tap + k) * axis.tap + axis.offset;
      all_begin = std::max(all_begin, begin[k]);
      all_end = std::min(all_end, end[k]);
      first = std::min(first, begin[k]);
      last = std::max(last, end[k]);
    }
    all_end = std::max(all_begin, all_end);
    if (all_begin == all_end) all_begin = all_end = last;
  }
  bool reads(int k, std::int64_t window) const { return window >= begin[k] && window < end[k]; }
};

/// The sums of `rows` by `taps` neighbours among the taps, for a vector of channels.
template <class E, int rows, int taps> struct TapSums {
  using V = typename VectorOf<E>::type;
  V sums[rows][taps];

  [[gnu::target("avx2,fma"), gnu::always_inline]] inline void load(const E* dw, std::int64_t row, std::int64_t tap) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < taps; ++k) sums[r][k] = *reinterpret_cast<const V*>(dw + r * row + k * tap);
  }
  [[gnu::target("avx2,fma"), gnu::always_inline]] inline void store(E* dw, std::int64_t row, std::int64_t tap) const {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < taps; ++k) *reinterpret_cast<V*>(dw + r * row + k * tap) = sums[r][k];
  }

  /// What taps [tap, past) give for window i.
  template <int first, int last, int tap, int past>
  [[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_window(const LineTaps<E>& line, const TapReach& reach,
                                                                         std::int64_t channels, std::int64_t channel,
                                                                         std::int64_t i) {
    const V dy = *reinterpret_cast<const V*>(line.dy + i * channels + channel);
    const std::int64_t at = i * reach.scale * channels + channel;
#pragma GCC unroll 4
    for (int r = first; r < last; ++r)
#pragma GCC unroll 4
      for (int k = tap; k < past; ++k)
        add_product<E>(sums[r][k], *reinterpret_cast<const V*>(line.x[r] + at + reach.shift[k] * channels), dy);
  }
  /// Windows [begin, end), for which not every tap reads something. Most often that is one window at either end, and
  /// one tap.
  template <int first, int last>
  [[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_edge(const LineTaps<E>& line, const TapReach& reach,
                                                                       std::int64_t channels, std::int64_t channel,
                                                                       std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (taps == 3) {
        const bool reads_0 = reach.reads(0, i), reads_2 = reach.reads(2, i);
        if (reach.reads(1, i) && reads_0 != reads_2) {
          if (reads_2) add_window<first, last, 1, 3>(line, reach, channels, channel, i);
          else add_window<first, last, 0, 2>(line, reach, channels, channel, i);
          continue;
        }
      }
      if (reach.reads(0, i)) add_window<first, last, 0, 1>(line, reach, channels, channel, i);
      if constexpr (taps > 1)
        if (reach.reads(1, i)) add_window<first, last, 1, 2>(line, reach, channels, channel, i);
      if constexpr (taps > 2)
        if (reach.reads(2, i)) add_window<first, last, 2, 3>(line, reach, channels, channel, i);
    }
  }

  /// Of a line, for rows [first, last) of taps, all of which read something.
  template <int first, int last>
  [[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_line(const LineTaps<E>& line, const TapReach& reach,
                                                                       std::int64_t channels, std::int64_t channel) {
    add_edge<first, last>(line, reach, channels, channel, reach.first, reach.all_begin);
    if (reach.all_begin == reach.all_end) return;
    const E *dy = line.dy + reach.all_begin * channels + channel, *end = line.dy + reach.all_end * channels + channel;
    const E* x[rows];
#pragma GCC unroll 4
    for (int r = first; r < last; ++r)
      x[r] = line.x[r] + (reach.all_begin * reach.scale + reach.shift[0]) * channels + channel;
    const std::int64_t tap = (taps > 1 ? reach.shift[1] - reach.shift[0] : 0) * channels, step = reach.scale * channels;
    for (; dy < end; dy += channels) {
      const V d = *reinterpret_cast<const V*>(dy);
#pragma GCC unroll 4
      for (int r = first; r < last; ++r) {
#pragma GCC unroll 4
        for (int k = 0; k < taps; ++k) add_product<E>(sums[r][k], *reinterpret_cast<const V*>(x[r] + k * tap), d);
        x[r] += step;
      }
    }
    add_edge<first, last>(line, reach, channels, channel, reach.all_end, reach.last);
  }
};

/// Adds what these lines give to `rows` by `taps` neighbours, for a vector of channels; windows in order for every tap.
/// Of several rows the first or the last may read nothing in a line, not both. `row`: elements of dw from a row of taps
/// to the next.
template <class E, int rows, int taps>
[[gnu::target("avx2,fma")]] void add_lines(std::span<const LineTaps<E>> lines, const TapReach& reach,
                                           const ChannelRange& c, std::int64_t channel, std::int64_t row, E* dw) {
  const std::int64_t channels = c.all;
  TapSums<E, rows, taps> sums;
  sums.load(dw + channel, row, channels);
  for (const LineTaps<E>& line : lines) {
    if constexpr (rows == 1) sums.template add_line<0, 1>(line, reach, channels, channel);
    else if (!line.x[0]) sums.template add_line<1, rows>(line, reach, channels, channel);
    else if (!line.x[rows - 1]) sums.template add_line<0, rows - 1>(line, reach, channels, channel);
    else sums.template add_line<0, rows>(line, reach, channels, channel);
  }
  sums.store(dw + channel, row, channels);
}

template <class E>
[[gnu::target("fma")]] void add_lines_of_channel(std::span<const LineTaps<E>> lines, const TapReach& reach, int rows,
                                                 int taps, std::int64_t channels, std::int64_t channel,
                                                 std::int64_t row, E* dw) {
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < taps; ++k) {
      E sum = dw[r * row + k * channels + channel];
      for (const LineTaps<E>& line : lines) {
        if (!line.x[r]) continue;
        for (std::int64_t i = reach.begin[k]; i < reach.end[k]; ++i)
          add_single(sum, line.x[r][(reach.shift[k] + i * reach.scale) * channels + channel],
                     line.dy[i * channels + channel]);
      }
      dw[r * row + k * channels + channel] = sum;
    }
}

template <class E, int rows, int taps>
void add_channels(std::span<const LineTaps<E>> lines, const TapReach& reach, const ChannelRange& c, std::int64_t row,
                  E* dw) {
  std::int64_t channel = c.first;
  for (; channel + lanes_of<E> <= c.last; channel += lanes_of<E>)
    add_lines<E, rows, taps>(lines, reach, c, channel, row, dw);
  for (; channel < c.last; ++channel) add_lines_of_channel<E>(lines, reach, rows, taps, c.all, channel, row, dw);
}
template <class E, int rows>
void add_taps(std::span<const LineTaps<E>> lines, const TapReach& reach, std::int64_t taps, const ChannelRange& c,
              std::int64_t row, E* dw) {
  if (taps == 3) add_channels<E, rows, 3>(lines, reach, c, row, dw);
  else if (taps == 2) add_channels<E, rows, 2>(lines, reach, c, row, dw);
  else add_channels<E, rows, 1>(lines, reach, c, row, dw);
}

/// The chains of channels [first, last) for the rows of taps [row, last_row), along examples and windows.
template <class E> class WeightSums {
 public:
  WeightSums(const KernelArguments* arguments, const KernelConvolutionCall& call)
      : axes_(call.axes),
        x_(pointer<E>(arguments, call.elements)),
        dy_(pointer<E>(arguments, call.windows)),
        dw_(target_pointer<E>(arguments, call.target)),
        channels_(call.groups),
        lines_(call.examples * lines_of(call.axes)) {}

  void run(std::int64_t row, std::int64_t last_row, std::int64_t first, std::int64_t last) {
    const ChannelRange c{channels_, first, last};
    for (std::int64_t tap = row * axes_[2].taps; tap < last_row * axes_[2].taps; ++tap)
      std::fill(dw_ + tap * channels_ + first, dw_ + tap * channels_ + last, E{});
    const std::int64_t bytes =
        (axes_[2].targets + axes_[2].sources) * (last - first) * static_cast<std::int64_t>(sizeof(E));
    const std::int64_t at_once =
        std::clamp<std::int64_t>(lines_bytes / std::max<std::int64_t>(1, bytes), 1, most_lines);
    for (std::int64_t begin = 0; begin < lines_; begin += at_once)
      for (std::int64_t r = row; r < last_row; r += most_taps)
        add_block(r, std::min(most_taps, last_row - r), begin, std::min(lines_, begin + at_once), c);
  }

 private:
  /// Lines [begin, end), for so many rows of taps from `row` on.
  void add_block(std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end, const ChannelRange& c) {
    LineTaps<E> lines[most_lines];
    std::size_t count = 0;
    bool together = true;
    for (std::int64_t at = begin; at < end; ++at) {
      LineTaps<E>& line = lines[count] = {dy_ + at * axes_[2].targets * channels_, {}};
      std::int64_t reading = 0;
      for (std::int64_t r = 0; r < rows; ++r) reading += (line.x[r] = elements_of(at, row + r)) != nullptr;
      if (reading == 0) continue;
      together = together && (reading == rows || (reading == rows - 1 && (!line.x[0] || !line.x[rows - 1])));
      ++count;
    }
    const std::span<const LineTaps<E>> all(lines, count);
    if (together) return add_rows(all, row, rows, c);
    for (std::int64_t r = 0; r < rows; ++r) {
      LineTaps<E> of_row[most_lines];
      std::size_t reading = 0;
      for (const LineTaps<E>& line : all)
        if (line.x[r]) of_row[reading++] = {line.dy, {line.x[r]}};
      add_rows({of_row, reading}, row + r, 1, c);
    }
  }

  void add_rows(std::span<const LineTaps<E>> lines, std::int64_t row, std::int64_t rows, const ChannelRange& c) {
    const std::int64_t of_row = axes_[2].taps * channels_;
    for (std::int64_t k = 0; k < axes_[2].taps; k += most_taps) {
      const std::int64_t taps = std::min(most_taps, axes_[2].taps - k);
      const TapReach reach(axes_[2], k, taps);
      E* dw = dw_ + row * of_row + k * channels_;
      if (rows == 3) add_taps<E, 3>(lines, reach, taps, c, of_row, dw);
      else if (rows == 2) add_taps<E, 2>(lines, reach, taps, c, of_row, dw);
      else add_taps<E, 1>(lines, reach, taps, c, of_row, dw);
    }
  }

  /// The line that this row of taps reads for a line of windows, or null.
  const E* elements_of(std::int64_t line, std::int64_t row) const {
    const std::int64_t of_example = lines_of(axes_), example = line / of_example, at = line % of_example;
    const std::int64_t s0 = axes_[0].source(at / axes_[1].targets, row / axes_[1].taps),
                       s1 = axes_[1].source(at % axes_[1].targets, row % axes_[1].taps);
    if (s0 < 0 || s1 < 0) return nullptr;
    return x_ + ((example * axes_[0].sources + s0) * axes_[1].sources + s1) * axes_[2].sources * channels_;
  }

  const WindowAxes& axes_;
  const E *x_, *dy_;
  E* dw_;
  const std::int64_t channels_, lines_;
};

std::int64_t rows_of_taps(const WindowAxes& axes) { return axes[0].taps * axes[1].taps; }
std::int64_t channel_blocks(const KernelConvolutionCall& call) { return divide_up(call.groups, channel_block); }
/// Few channels: rows of taps are units of their own.
bool divides_rows(const KernelConvolutionCall& call) { return channel_blocks(call) < enough_units; }

}  // namespace

BoundThunk bind_depthwise(const KernelConvolutionCall& call) {
  BoundThunk bound{.extent = channel_blocks(call) * (divides_rows(call) ? rows_of_taps(call.axes) : 1),
                   .cut = Cut::nowhere};
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
