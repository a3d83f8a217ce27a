/// Convolutions whose groups have one channel each: a product would have rows of one element here. Channels are
/// neighbours in memory and make vectors; sums stay in registers over all taps.
#include <algorithm>
#include "gradus/backend/library/channel_vectors.h"
#include "gradus/backend/library/convolution.h"
#include "gradus/base/divide.h"

namespace gradus::library {
namespace {

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

}  // namespace

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

}  // namespace gradus::library
