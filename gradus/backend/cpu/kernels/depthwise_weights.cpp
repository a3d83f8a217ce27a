/// Gradients of depthwise convolutions by their weights. Sums of three by three taps stay in registers over the lines
/// of a block: each window is then read once for all of them, and elements are read from the first-level cache.
#include <algorithm>
#include <span>
#include "gradus/backend/cpu/kernels/convolution.h"
#include "gradus/backend/cpu/kernels/depthwise_channels.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using namespace depthwise;

constexpr std::int64_t channel_block = 16;      // a cache line of f32
constexpr std::int64_t most_lines = 32;         // that are walked together, and
constexpr std::int64_t lines_bytes = 32 << 10;  // memory for them: the first-level cache
constexpr std::int64_t enough_units = 16;

/// The reach of `count` neighbours from `tap` on.
TapReach reach_of(const WindowAxis& axis, std::int64_t tap, std::int64_t count) {
  TapReach r{.scale = axis.scale, .all_begin = 0, .all_end = axis.targets, .first = axis.targets, .last = 0};
  for (std::int64_t k = 0; k < count; ++k) {
    const WindowAxis::Run run = axis.run(tap + k);
    const bool none = run.count <= 0;
    r.begin[k] = none ? 0 : run.target;
    r.end[k] = none ? 0 : run.target + run.count;
    r.shift[k] = (tap + k) * axis.tap + axis.offset;
    r.all_begin = std::max(r.all_begin, r.begin[k]);
    r.all_end = std::min(r.all_end, r.end[k]);
    r.first = std::min(r.first, r.begin[k]);
    r.last = std::max(r.last, r.end[k]);
  }
  r.all_end = std::max(r.all_begin, r.all_end);
  if (r.all_begin == r.all_end) r.all_begin = r.all_end = r.last;
  return r;
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
  /// Lines [begin, end), for `rows` rows of taps from `row` on.
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
      const TapReach reach = reach_of(axes_[2], k, taps);
      functions_.add_lines[rows - 1][taps - 1](lines.data(), lines.size(), reach, c, of_row,
                                               dw_ + row * of_row + k * channels_);
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

  const ChannelFunctions<E>& functions_ = channel_functions<E>();
  const WindowAxes& axes_;
  const E *x_, *dy_;
  E* dw_;
  const std::int64_t channels_, lines_;
};

std::int64_t rows_of_taps(const WindowAxes& axes) { return axes[0].taps * axes[1].taps; }
std::int64_t channel_blocks(const KernelConvolutionCall& call) { return divide_up(call.groups, channel_block); }
/// Few channels: rows of taps are units of their own.
bool divides_rows(const KernelConvolutionCall& call) { return channel_blocks(call) < enough_units; }

template <class T>
void sum_windows(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                 std::int64_t end) {
  const std::int64_t rows = rows_of_taps(call.axes), channels = call.groups;
  const auto channel = [&](std::int64_t block) { return std::min(channels, block * channel_block); };
  WeightSums<typename ComputedAs<T>::type> sums(arguments, call);
  if (!divides_rows(call)) return sums.run(0, rows, channel(begin), channel(end));
  while (begin < end) {  // as many whole blocks of channels as there are, and the parts of blocks beside them
    const std::int64_t block = begin / rows, row = begin % rows;
    const std::int64_t blocks = row == 0 ? (end - begin) / rows : 0;
    const std::int64_t last = blocks > 0 ? rows : std::min(rows, row + end - begin);
    sums.run(row, last, channel(block), channel(block + std::max<std::int64_t>(1, blocks)));
    begin += blocks > 0 ? blocks * rows : last - row;
  }
}
template <class T> void sum_windows_of(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_windows<T>(arguments, *static_cast<const KernelConvolutionCall*>(arguments->data), begin, end);
}

}  // namespace

BoundThunk bind_depthwise(const KernelConvolutionCall& call) {
  BoundThunk bound{.extent = channel_blocks(call) * (divides_rows(call) ? rows_of_taps(call.axes) : 1),
                   .cut = Cut::nowhere};
  bound.bytes = call.bytes();
  bound.flops = call.flops();
  bound.run = call.dtype == f32   ? run_depthwise_weights_f32
              : call.dtype == f64 ? run_depthwise_weights_f64
              : call.dtype == i32 ? run_depthwise_weights_i32
                                  : run_depthwise_weights_i64;
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  with_convolved_type(call.dtype, [&]<class T>(T) { sum_windows<T>(arguments, call, begin, end); });
}

void run_depthwise_weights_f32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_windows_of<float>(arguments, begin, end);
}
void run_depthwise_weights_f64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_windows_of<double>(arguments, begin, end);
}
void run_depthwise_weights_i32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_windows_of<std::int32_t>(arguments, begin, end);
}
void run_depthwise_weights_i64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  sum_windows_of<std::int64_t>(arguments, begin, end);
}

}  // namespace gradus::library
