/// The geometry of a convolution for given symbols, which all its kernels use.
#pragma once
#include <optional>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/kernels/phases.h"

namespace gradus::library {

/// Calls visit with the type of a convolution's elements.
template <class Visit> void with_convolved_type(DType t, Visit visit) {
  if (t == f32) visit(float{});
  else if (t == f64) visit(double{});
  else if (t == i32) visit(std::int32_t{});
  else visit(std::int64_t{});
}

/// How a convolution is computed, by names that can be disabled; where none fits, rows are packed. A group of several
/// channels cannot be depthwise. `winograd` alone computes other bits.
enum class Way { packed, strips, depthwise, winograd };
struct Ways {
  bool strips = true, depthwise = true, winograd = true;
  int shared_slot = -1;  // of memory that workers share
};

/// Targets of a line that the same taps give anything: `count` of them from `target` on, `target_step` apart, whose
/// sources are `source_step` apart. No taps: they are zeros.
struct ColumnRun {
  struct Tap {
    std::int64_t number, source;  // of the first target
  };
  std::int64_t target = 0, target_step = 1, count = 0, source_step = 1;
  std::vector<Tap> taps;
};
void for_each_vector(const ColumnRun& run, const auto& visit) { visit(run.taps); }

/// A call of a convolution or a transposed one. Weights are [taps, inner channels, columns].
struct ConvolutionCall {
  DType dtype;
  WindowAxes axes;
  std::int64_t examples, groups;
  std::int64_t source_channels, target_channels;  // of all groups
  int source, weights, target;                    // slots
  std::vector<ColumnRun> columns = {};            // of depthwise ones
  Way way = Way::packed;

  /// The bytes of sources and targets.
  std::int64_t bytes() const;
  /// The operations on taps that lie within the image.
  std::int64_t flops() const;
};
void for_each_vector(const ConvolutionCall& call, const auto& visit) { visit(call.columns); }

/// Where the weights of a group lie, in elements: [taps, rows, row].
struct GroupedWeights {
  std::int64_t rows = 0, row = 0;                  // of a tap; from a row to the next
  std::int64_t group_rows = 0, group_columns = 0;  // to those of the next group
};

/// Nothing where runs of steps or lines of targets would be too short.
std::optional<BoundThunk> bind_strips(const ConvolutionCall& call, const GroupedWeights& weights);
void run_strips(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end);

/// Binds the way with fewer multiplications for f32, many channels, kernels of 3 x 3 and stride 1. It rounds
/// differently (ops/conv.h says what that means). Nothing if it is not worth it.
std::optional<BoundThunk> bind_winograd(const ConvolutionCall& call, const GroupedWeights& weights, int shared_slot);
void transform_weights(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                       std::int64_t end);
/// Its second part.
void multiply_tiles(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin,
                    std::int64_t end);

/// Every group has one channel in and one out.
constexpr bool is_depthwise(std::int64_t groups, std::int64_t channels_in, std::int64_t channels_out) {
  return groups > 1 && channels_in == groups && channels_out == groups;
}
/// Loops over lines of targets and channels, of such groups.
/// Finds `columns`, too.
BoundThunk bind_depthwise(ConvolutionCall& call);
void run_depthwise(const KernelArguments* arguments, const ConvolutionCall& call, std::int64_t begin, std::int64_t end);

/// A call of the gradient by the weights: targets of `axes` are windows, sources elements.
struct KernelConvolutionCall {
  DType dtype;
  WindowAxes axes;
  std::int64_t examples, groups;
  std::int64_t element_channels, window_channels;
  int elements, windows, target;  // slots
  Way way = Way::packed;

  std::int64_t all_windows() const { return examples * targets_of(axes); }
  /// The bytes of elements and windows.
  std::int64_t bytes() const;
  std::int64_t flops() const;
};
std::optional<BoundThunk> bind_strips(const KernelConvolutionCall& call);
void run_strips(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                std::int64_t end);
std::optional<BoundThunk> bind_winograd(const KernelConvolutionCall& call, int shared_slot);
/// All of it where there are several groups.
void sum_tiles(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
               std::int64_t end);
/// Its second part.
void transform_tile_sums(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                         std::int64_t end);
BoundThunk bind_depthwise(const KernelConvolutionCall& call);
void run_depthwise(const KernelArguments* arguments, const KernelConvolutionCall& call, std::int64_t begin,
                   std::int64_t end);

}  // namespace gradus::library
