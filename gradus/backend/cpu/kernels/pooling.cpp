/// Windows that choose: the tap of the largest element, reading at taps, adding at taps, and folding patches back.
#include <algorithm>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/kernels/sum_of.h"
#include "gradus/backend/cpu/kernels/windows.h"
#include "gradus/base/wide_vectors.h"
#include "gradus/ops/pool_ops.h"

namespace gradus::library {
namespace {

struct Call {
  DType dtype;
  WindowAxes axes;
  std::int64_t examples, channels;
  int first, second, target;  // slots
  std::int64_t line() const { return axes[2].targets * channels; }
};

Shape spatial(const Shape& shape) { return Shape(std::span(shape.begin() + 1, shape.end() - 1)); }

Call call_of(const Graph& graph, int value, const Shape& result, const WindowAxes& axes) {
  const Value& v = graph[value];
  return {graph[v.in[0]].spec.dtype,
          axes,
          result[0],
          result[-1],
          storage_of(graph, v.in[0]),
          v.in.size() > 1 ? storage_of(graph, v.in[1]) : -1,
          value};
}

/// Work is divided by lines of targets.
BoundThunk bound_of(Call call, std::int64_t scratch_per_line = 0) {
  const std::int64_t targets = call.examples * targets_of(call.axes) * call.channels;
  BoundThunk bound{.extent = targets == 0 ? 0 : call.examples * lines_of(call.axes)};
  bound.bytes = 2 * (targets + call.examples * sources_of(call.axes) * call.channels) * size_of(call.dtype);
  bound.flops = 4 * targets * taps_of(call.axes);
  bound.worker_scratch = scratch_per_line * call.line() * size_of(call.dtype);
  bound.data = std::make_shared<Call>(std::move(call));
  bound.image = image_of<Call>;
  return bound;
}

/// Calls visit(line, flat position of the example's first source, line within the example).
template <class Visit> void for_each_line(const Call& call, std::int64_t begin, std::int64_t end, Visit visit) {
  const std::int64_t lines = lines_of(call.axes);
  for (std::int64_t at = begin; at < end; ++at) visit(at, at / lines * sources_of(call.axes), at % lines);
}

/// Where x is larger than the best so far, or the first at all, or the first NaN.
template <class T>
GRADUS_WIDE_VECTORS void choose(const T* __restrict x, T* __restrict best, std::int32_t* __restrict taps,
                                std::int32_t tap, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const bool take = (taps[c] < 0) | (!(x[c] <= best[c]) & (best[c] == best[c]));
    best[c] = take ? x[c] : best[c];
    taps[c] = take ? tap : taps[c];
  }
}

template <class T>
GRADUS_WIDE_VECTORS void deposit(const T* __restrict y, const std::int32_t* __restrict taps, T* __restrict x,
                                 std::int32_t tap, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) { x[c] = sum_of(x[c], taps[c] == tap ? y[c] : T{}); }
}

template <class T> void add(const T* __restrict from, T* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = sum_of(to[i], from[i]);
}

template <class T> const T* read(const KernelArguments* arguments, int slot) {
  return static_cast<const T*>(arguments->slots[slot]);
}
template <class T> T* written(const KernelArguments* arguments, int slot) {
  return static_cast<T*>(arguments->slots[slot]);
}

template <class Op> WindowShapes shapes_of(const Op& op, const Shape& window, Symbols symbols) {
  Shape before = op.strides;
  for (int i = 0; i < before.rank(); ++i) before.set(i, 0);
  if constexpr (requires { op.before; }) before = op.before.evaluated(symbols);
  return {op.strides, op.dilations, before, window};
}

}  // namespace

BoundThunk bind_window_argmax(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const WindowArgmax& op = *v.op.as<WindowArgmax>();
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = v.spec.shape.evaluated(symbols);
  return bound_of(
      call_of(graph, value, y, windows_to_elements(shapes_of(op, op.window, symbols), spatial(y), spatial(x))), 1);
}

void run_window_argmax(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const std::int64_t channels = call.channels;
  with_type(call.dtype, [&]<class T>(T) {
    const T* x = read<T>(arguments, call.first);
    T* best = static_cast<T*>(arguments->scratch);
    for_each_line(call, begin, end, [&](std::int64_t at, std::int64_t example, std::int64_t line) {
      std::int32_t* taps = written<std::int32_t>(arguments, call.target) + at * call.line();
      std::fill(taps, taps + call.line(), -1);
      std::fill(best, best + call.line(), T{});
      for_each_tap(call.axes, line, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          const std::int64_t to = (run.target + i * run.target_step) * channels;
          choose(x + (example + source + run.source + i * run.source_step) * channels, best + to, taps + to,
                 static_cast<std::int32_t>(tap), channels);
        }
      });
    });
  });
}

BoundThunk bind_window_select(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const WindowSelect& op = *v.op.as<WindowSelect>();
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = v.spec.shape.evaluated(symbols);
  BoundThunk bound = bound_of(
      call_of(graph, value, y, windows_to_elements(shapes_of(op, op.window, symbols), spatial(y), spatial(x))));
  std::int64_t taps = 1;
  for (std::int64_t k : op.window) taps *= k;
  bound.worker_scratch = taps * static_cast<std::int64_t>(sizeof(std::int64_t));  // where each tap of a window lies
  return bound;
}

namespace {

/// Per tap of the window at `target` of a line: its position within the example, -1 if there is none.
void find_taps(const WindowAxes& axes, std::int64_t line, std::int64_t target, std::int64_t* positions) {
  for (std::int64_t k0 = 0; k0 < axes[0].taps; ++k0)
    for (std::int64_t k1 = 0; k1 < axes[1].taps; ++k1)
      for (std::int64_t k2 = 0; k2 < axes[2].taps; ++k2) {
        const std::int64_t s0 = axes[0].source(line / axes[1].targets, k0),
                           s1 = axes[1].source(line % axes[1].targets, k1), s2 = axes[2].source(target, k2);
        *positions++ = s0 < 0 || s1 < 0 || s2 < 0 ? -1 : (s0 * axes[1].sources + s1) * axes[2].sources + s2;
      }
}

/// Windows of so many taps are read tap by tap, in vectors; larger ones element by element.
constexpr std::int64_t most_taps_of_vectors = 16;

template <class T>
GRADUS_WIDE_VECTORS void take(const T* __restrict x, const std::int32_t* __restrict taps, T* __restrict y,
                              std::int32_t tap, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = taps[c] == tap ? x[c] : y[c];
}

/// Bits of elements as numbers, since they are only moved.
void with_bits(DType dtype, auto f) {
  switch (size_of(dtype)) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    default: return f(std::uint64_t());
  }
}

void take_tap_by_tap(const KernelArguments* arguments, const Call& call, std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = call.channels;
  with_bits(call.dtype, [&]<class T>(T) {
    for_each_line(call, begin, end, [&](std::int64_t at, std::int64_t example, std::int64_t line) {
      T* y = written<T>(arguments, call.target) + at * call.line();
      const std::int32_t* taps = read<std::int32_t>(arguments, call.second) + at * call.line();
      std::fill(y, y + call.line(), T{});
      for_each_tap(call.axes, line, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          const std::int64_t to = (run.target + i * run.target_step) * channels;
          take(read<T>(arguments, call.first) + (example + source + run.source + i * run.source_step) * channels,
               taps + to, y + to, static_cast<std::int32_t>(tap), channels);
        }
      });
    });
  });
}

}  // namespace

void run_window_select(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const std::int64_t channels = call.channels, count = taps_of(call.axes);
  if (count <= most_taps_of_vectors) return take_tap_by_tap(arguments, call, begin, end);
  auto* positions = static_cast<std::int64_t*>(arguments->scratch);
  with_type(call.dtype, [&]<class T>(T) {
    for_each_line(call, begin, end, [&](std::int64_t at, std::int64_t example, std::int64_t line) {
      for (std::int64_t target = 0; target < call.axes[2].targets; ++target) {
        const std::int64_t to = (at * call.axes[2].targets + target) * channels;
        const std::int32_t* taps = read<std::int32_t>(arguments, call.second) + to;
        const T* x = read<T>(arguments, call.first) + example * channels;
        T* y = written<T>(arguments, call.target) + to;
        find_taps(call.axes, line, target, positions);
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t position = taps[c] >= 0 && taps[c] < count ? positions[taps[c]] : -1;
          y[c] = position >= 0 ? x[position * channels + c] : T{};
        }
      }
    });
  });
}

BoundThunk bind_window_deposit(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const WindowDeposit& op = *v.op.as<WindowDeposit>();
  const Shape y = graph[v.in[0]].spec.shape.evaluated(symbols), x = v.spec.shape.evaluated(symbols);
  return bound_of(
      call_of(graph, value, x, elements_to_windows(shapes_of(op, op.window, symbols), spatial(x), spatial(y))));
}

void run_window_deposit(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const std::int64_t channels = call.channels;
  with_computing_type(call.dtype, [&]<class T>(T) {
    for_each_line(call, begin, end, [&](std::int64_t at, std::int64_t example, std::int64_t line) {
      T* x = written<T>(arguments, call.target) + at * call.line();
      std::fill(x, x + call.line(), T{});
      for_each_tap(call.axes, line, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          const std::int64_t from = (example + source + run.source + i * run.source_step) * channels;
          deposit(read<T>(arguments, call.first) + from, read<std::int32_t>(arguments, call.second) + from,
                  x + (run.target + i * run.target_step) * channels, static_cast<std::int32_t>(tap), channels);
        }
      });
    });
  });
}

BoundThunk bind_fold(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Fold& op = *v.op.as<Fold>();
  const Shape patches = graph[v.in[0]].spec.shape.evaluated(symbols), x = v.spec.shape.evaluated(symbols);
  const auto count = static_cast<std::size_t>(op.strides.rank());
  const Shape windows(std::span(patches.begin() + 1, count)), window(std::span(patches.begin() + 1 + count, count));
  return bound_of(call_of(graph, value, x, elements_to_windows(shapes_of(op, window, symbols), spatial(x), windows)));
}

void run_fold(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const std::int64_t channels = call.channels, count = taps_of(call.axes);
  with_computing_type(call.dtype, [&]<class T>(T) {
    for_each_line(call, begin, end, [&](std::int64_t at, std::int64_t example, std::int64_t line) {
      T* x = written<T>(arguments, call.target) + at * call.line();
      std::fill(x, x + call.line(), T{});
      for_each_tap(call.axes, line, [&](std::int64_t tap, const WindowAxis::Run& run, std::int64_t source) {
        for (std::int64_t i = 0; i < run.count; ++i)
          add(read<T>(arguments, call.first) +
                  ((example + source + run.source + i * run.source_step) * count + tap) * channels,
              x + (run.target + i * run.target_step) * channels, channels);
      });
    });
  });
}

}  // namespace gradus::library
