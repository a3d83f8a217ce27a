/// Convolutions whose groups have one channel each: a product would have rows of one element here. Channels are
/// neighbours in memory and make vectors; sums stay in registers over all taps.
#include <algorithm>
#include "gradus/backend/cpu/kernels/convolution.h"
#include "gradus/backend/cpu/kernels/depthwise_channels.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

using namespace depthwise;

/// The targets of one remainder by the divisor, cut where a tap begins or ends to give them anything.
void add_runs(const WindowAxis& axis, const Residue& residue, std::vector<ColumnRun>& runs) {
  const auto& [first, count, step, taps] = residue;
  struct Reach {
    std::int64_t tap, base, begin, end;
  };
  std::vector<Reach> reaches;
  std::vector<std::int64_t> cuts{0, count};
  for (const auto& [tap, base] : taps) {
    const std::int64_t begin = std::min(count, base >= 0 ? 0 : divide_up(-base, step));
    const std::int64_t end = base >= axis.sources ? begin : std::min(count, divide_up(axis.sources - base, step));
    reaches.push_back({tap, base, begin, std::max(begin, end)});
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

/// One line of targets; `room` is for all taps of a window and all rows of them.
template <class E>
void run_line(const ChannelFunctions<E>& functions, const ConvolutionCall& call, const E* example, const E* w,
              std::int64_t line, E* y, TapAt<E>* room) {
  const auto& axes = call.axes;
  const std::int64_t channels = call.groups, t0 = line / axes[1].targets, t1 = line % axes[1].targets;
  TapAt<E>* taps = room;  // rows of taps that read anything: their lines
  for (std::int64_t k0 = 0; k0 < axes[0].taps; ++k0)
    for (std::int64_t k1 = 0; k1 < axes[1].taps; ++k1) {
      const std::int64_t s0 = axes[0].source(t0, k0), s1 = axes[1].source(t1, k1);
      if (s0 < 0 || s1 < 0) continue;
      *taps++ = {example + (s0 * axes[1].sources + s1) * axes[2].sources * channels,
                 w + (k0 * axes[1].taps + k1) * axes[2].taps * channels};
    }
  for (const ColumnRun& columns : call.columns) {
    SharedTaps<E> run{taps, 0, columns.source_step * channels, columns.target_step * channels};
    for (const TapAt<E>* row = room; row != taps; ++row)
      for (const ColumnRun::Tap& tap : columns.taps)
        taps[run.count++] = {row->x + tap.source * channels, row->w + tap.number * channels};
    E* first = y + columns.target * channels;
    std::int64_t at = 0;
    for (; at + 4 <= columns.count; at += 4) functions.sum_four(run, at, channels, first);
    for (; at + 2 <= columns.count; at += 2) functions.sum_two(run, at, channels, first);
    if (at < columns.count) functions.sum_one(run, at, channels, first);
  }
}

template <class T>
void run_lines(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end) {
  using E = typename ComputedAs<T>::type;
  const ChannelFunctions<E>& functions = channel_functions<E>();
  const std::int64_t channels = call.groups, lines = lines_of(call.axes);
  for (std::int64_t at = begin; at < end; ++at)
    run_line<E>(functions, call, pointer<E>(arguments, call.source) + at / lines * sources_of(call.axes) * channels,
                pointer<E>(arguments, call.weights), at % lines,
                target_pointer<E>(arguments, call.target) + at * call.axes[2].targets * channels,
                static_cast<TapAt<E>*>(arguments->scratch));
}
template <class T> void run_lines_of(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_lines<T>(arguments, *static_cast<const ConvolutionCall*>(arguments->data), begin, end);
}

}  // namespace

BoundThunk bind_depthwise(ConvolutionCall& call) {
  const std::int64_t targets = call.examples * targets_of(call.axes) * call.groups, taps = taps_of(call.axes);
  const WindowAxis& axis = call.axes[2];
  for (std::int64_t first = 0; first < std::min(axis.divisor, axis.targets); ++first)
    add_runs(axis, residue_of(axis, first), call.columns);
  BoundThunk bound{.extent = targets == 0 ? 0 : call.examples * lines_of(call.axes)};
  bound.bytes = call.bytes();
  bound.flops = 2 * targets * taps;
  const std::int64_t rows = call.axes[0].taps * call.axes[1].taps;
  bound.worker_scratch = (rows + taps) * static_cast<std::int64_t>(sizeof(TapAt<float>));
  bound.run = call.dtype == f32   ? run_depthwise_f32
              : call.dtype == f64 ? run_depthwise_f64
              : call.dtype == i32 ? run_depthwise_i32
                                  : run_depthwise_i64;
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  with_convolved_type(call.dtype, [&]<class T>(T) { run_lines<T>(arguments, call, begin, end); });
}

void run_depthwise_f32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_lines_of<float>(arguments, begin, end);
}
void run_depthwise_f64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_lines_of<double>(arguments, begin, end);
}
void run_depthwise_i32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_lines_of<std::int32_t>(arguments, begin, end);
}
void run_depthwise_i64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_lines_of<std::int64_t>(arguments, begin, end);
}

}  // namespace gradus::library
