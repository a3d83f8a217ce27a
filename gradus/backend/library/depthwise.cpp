/// Convolutions whose groups have one channel each: loops over lines of targets, their taps, and channels, which are
/// neighbours in memory. A product would have rows of one element here.
#include <algorithm>
#include <cmath>
#include "gradus/backend/library/convolution.h"

namespace gradus::library {
namespace {

/// a * b + c, rounded once; integers wrap around.
template <class T> T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>) return __builtin_fmaf(a, b, c);
  else if constexpr (std::is_same_v<T, double>) return __builtin_fma(a, b, c);
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) +
                          static_cast<std::uint64_t>(c));
}

/// `count` rows of channels, and how far apart they are.
template <class T> struct Rows {
  T* first;
  std::int64_t step;
};

/// y[i][c] += a[i][c] * b[i][c] for rows i one after the other.
template <class T>
[[gnu::target("avx2,fma")]] void add_products(Rows<T> y, Rows<const T> a, Rows<const T> b, std::int64_t count,
                                              std::int64_t channels) {
  for (std::int64_t i = 0; i < count; ++i) {
    T* __restrict sum = y.first + i * y.step;
    const T* __restrict x = a.first + i * a.step;
    const T* __restrict w = b.first + i * b.step;
    for (std::int64_t c = 0; c < channels; ++c) sum[c] = multiply_add(x[c], w[c], sum[c]);
  }
}

template <class T> const T* pointer(const KernelArguments* arguments, int slot) {
  return static_cast<const T*>(arguments->slots[slot]);
}
template <class T> T* target_pointer(const KernelArguments* arguments, int slot) {
  return static_cast<T*>(arguments->slots[slot]);
}

template <class T>
void run_lines(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end) {
  const T* x = pointer<T>(arguments, call.source);
  const T* w = pointer<T>(arguments, call.weights);
  const std::int64_t channels = call.groups, lines = lines_of(call.axes), width = call.axes[2].targets;
  for (std::int64_t at = begin; at < end; ++at) {
    const T* example = x + at / lines * sources_of(call.axes) * channels;
    T* line = target_pointer<T>(arguments, call.target) + at * width * channels;
    std::fill(line, line + width * channels, T{});
    for_each_tap(call.axes, at % lines, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
      add_products<T>({line + run.target * channels, run.target_step * channels},
                      {example + (source + run.source) * channels, run.source_step * channels}, {w + tap * channels, 0},
                      run.count, channels);
    });
  }
}

constexpr std::int64_t channel_block = 32;

/// Chains along examples and windows, for channels [first, last).
template <class T>
void run_channels(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t first,
                  std::int64_t last) {
  const T* x = pointer<T>(arguments, call.elements);
  const T* dy = pointer<T>(arguments, call.windows);
  T* dw = target_pointer<T>(arguments, call.target);
  const std::int64_t channels = call.groups, lines = lines_of(call.axes), width = call.axes[2].targets;
  for (std::int64_t tap = 0; tap < taps_of(call.axes); ++tap)
    std::fill(dw + tap * channels + first, dw + tap * channels + last, T{});
  for (std::int64_t at = 0; at < call.examples * lines; ++at) {
    const T* example = x + at / lines * sources_of(call.axes) * channels + first;
    const T* line = dy + at * width * channels + first;
    for_each_tap(call.axes, at % lines, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
      add_products<T>({dw + tap * channels + first, 0},
                      {example + (source + run.source) * channels, run.source_step * channels},
                      {line + run.target * channels, run.target_step * channels}, run.count, last - first);
    });
  }
}

}  // namespace

bool is_depthwise(const ConvolutionCall& call) {
  return call.groups > 1 && call.source_channels == call.groups && call.target_channels == call.groups;
}

BoundThunk bind_depthwise(const ConvolutionCall& call) {
  const std::int64_t targets = call.examples * targets_of(call.axes) * call.groups, taps = taps_of(call.axes);
  BoundThunk bound{.extent = targets == 0 ? 0 : call.examples * lines_of(call.axes)};
  bound.bytes = (targets + call.examples * sources_of(call.axes) * call.groups) * size_of(call.dtype);
  bound.flops = 2 * targets * taps;
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  with_convolved_type(call.dtype, [&]<class T>(T) { run_lines<T>(arguments, call, begin, end); });
}

bool is_depthwise(const KernelConvolutionCall& call) {
  return call.groups > 1 && call.element_channels == call.groups && call.window_channels == call.groups;
}

BoundThunk bind_depthwise(const KernelConvolutionCall& call) {
  const std::int64_t windows = call.examples * targets_of(call.axes) * call.groups;
  BoundThunk bound{.extent = (call.groups + channel_block - 1) / channel_block};
  bound.bytes = (windows + call.examples * sources_of(call.axes) * call.groups) * size_of(call.dtype);
  bound.flops = 2 * windows * taps_of(call.axes);
  return bound;
}

void run_depthwise(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                   std::int64_t end) {
  with_convolved_type(call.dtype, [&]<class T>(T) {
    for (std::int64_t block = begin; block < end; ++block)
      run_channels<T>(arguments, call, block * channel_block, std::min(call.groups, (block + 1) * channel_block));
  });
}

}  // namespace gradus::library
