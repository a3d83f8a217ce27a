/// Pooling by its primitives, by depthwise convolutions with ones, and by reductions.
#include "gradus/ops/pool.h"
#include <limits>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/window_geometry.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

void check_input(std::string_view op, const Tensor& x, int spatial = 0) {
  const int rank = x.shape().rank();
  require(rank >= 3 && rank <= 5 && (spatial == 0 || rank == spatial + 2), op, ": the input is ", x.spec(),
          ", expected [batch, spatial..., channels] with ",
          spatial == 1   ? "one spatial dimension"
          : spatial == 2 ? "two spatial dimensions"
          : spatial == 3 ? "three spatial dimensions"
                         : "one to three spatial dimensions");
  require(x.dtype() != boolean, op, ": the input is ", x.spec(), ", expected numbers; cast it first");
}

void check_floats(std::string_view op, const Tensor& x) {
  require(is_floating(x.dtype()), op, ": the input is ", x.spec(), ", expected a float type; cast it first");
}

Windows pool_windows(std::string_view op, const Tensor& x, const Sizes& window, const PoolingOptions& o) {
  const int count = x.shape().rank() - 2;
  const Shape kernel = one_each(op, "sizes of a window", window, count, 1);
  require(!window.empty(), op, ": the window has no size");
  const Sizes own(kernel.begin(), kernel.end());
  return windows_over(op, x.spec(), kernel,
                      {.strides = o.strides.empty() ? own : o.strides,
                       .dilations = o.dilations,
                       .padding = o.padding,
                       .paddings = o.paddings,
                       .ceil_mode = o.ceil_mode});
}

/// True if window `o` along spatial dimension i sees an element.
bool sees_something(const Windows& w, int i, std::int64_t o, std::int64_t input) {
  const std::int64_t begin = o * w.strides[i] - w.before[i];
  const std::int64_t first = begin >= 0 ? 0 : (-begin + w.dilations[i] - 1) / w.dilations[i];
  return first < w.kernel[i] && begin + first * w.dilations[i] < input;
}

/// True if `d` is known to be at most `bound`.
bool is_at_most(std::int64_t d, std::int64_t bound) {
  return dimension::is_never_negative(dimension::subtract(bound, d));
}

/// True if a window may be without elements: padding that is wide, or gaps that an input falls into.
bool may_see_nothing(const Windows& w, const Shape& input) {
  for (int i = 0; i < w.kernel.rank(); ++i) {
    const std::int64_t most = w.kernel[i] - 1;
    const bool reaches = is_at_most(w.before[i], most) && is_at_most(w.after[i], most) && w.dilations[i] == 1;
    if (input[i] != 0 && reaches) continue;
    if (input[i] < 0 || w.size[i] < 0) return w.before[i] != 0 || w.after[i] != 0;
    for (std::int64_t o = 0; o < w.size[i]; ++o)
      if (!sees_something(w, i, o, input[i])) return true;
  }
  return false;
}

/// Integers have no infinity.
scalar::Literal lowest(DType t) {
  if (is_floating(t)) return -std::numeric_limits<double>::infinity();
  return with_type(t, []<class T>(T) -> scalar::Literal {
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(std::numeric_limits<T>::lowest());
    else return 0;
  });
}

struct Chosen {
  Tensor values, taps;
};

Chosen choose(const Windows& w, const Tensor& x) {
  const Tensor taps = apply(WindowArgmax{w.kernel, w.strides, w.dilations, w.before, w.size}, x);
  Tensor values = apply(WindowSelect{w.kernel, w.strides, w.dilations, w.before}, x, taps);
  const bool sees_nothing = may_see_nothing(w, spatial_of(x.shape()));
  if (SizeChoice::choose(sees_nothing) || sees_nothing)
    values = where(taps < fill_like(taps, 0), fill_like(values, lowest(x.dtype())), values);
  return {values, taps};
}

Tensor max_pool(std::string_view op, int spatial, const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  check_input(op, x, spatial);
  const Windows w = pool_windows(op, x, window, options);
  return in_computed_dtype(x, [&](const Tensor& input) { return choose(w, input).values; });
}

/// [n] -> [n, 1, ...] so that it lies along dimension `axis` of `rank`.
Tensor along(const Tensor& x, int axis, int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? x.shape()[0] : 1);
  return reshape(x, shape);
}

Tensor size_number(std::int64_t n) { return fill({}, n, i64); }

/// Per window along spatial dimension i: how many taps stand below `bound`, counted from the element before which it
/// begins.
Tensor taps_below(const Windows& w, int i, const Tensor& bound) {
  const Tensor begin = iota({w.size[i]}, i64) * size_number(w.strides[i]) - extent(w.before[i], i64);
  const Tensor taps = floor_divide(bound - begin + size_number(w.dilations[i] - 1), size_number(w.dilations[i]));
  return minimum(maximum(taps, size_number(0)), size_number(w.kernel[i]));
}

/// How many elements each window averages over: [size..., 1].
Tensor counts(const Windows& w, const Shape& input, bool include_padding, DType t) {
  const int count = w.kernel.rank();
  Tensor all = fill({}, 1, i64);
  for (int i = 0; i < count; ++i) {
    const Tensor begin = include_padding ? size_number(0) - extent(w.before[i], i64) : size_number(0);
    const Tensor end = extent(include_padding ? dimension::add(input[i], w.after[i]) : input[i], i64);
    all = all * along(taps_below(w, i, end) - taps_below(w, i, begin), i, count + 1);
  }
  return cast(all, t);
}

/// True if every window averages over all of its taps.
bool counts_are_equal(const Windows& w, const Shape& input, bool include_padding) {
  for (int i = 0; i < w.kernel.rank(); ++i) {
    const std::int64_t before = w.before[i];
    if (!include_padding && before != 0) return false;
    const std::int64_t room = dimension::add(input[i], include_padding ? dimension::add(before, w.after[i]) : before);
    const std::int64_t steps = dimension::multiply(dimension::subtract(w.size[i], 1), w.strides[i]);
    if (!is_at_most(dimension::add(steps, w.reach(i)), room)) return false;
  }
  return true;
}

std::int64_t taps_of(const Windows& w) { return w.kernel.size(); }

/// A depthwise convolution with ones.
Tensor sum_windows(const Windows& w, const Tensor& x) {
  const std::int64_t channels = x.shape()[-1];
  require(channels >= 0, "pooling: the channels of ", x.spec(), " must be known when tracing");
  Shape ones = w.kernel;
  ones.push_back(1);
  ones.push_back(channels);
  return apply(Convolution{w.strides, w.dilations, w.before, w.size, std::max<std::int64_t>(channels, 1)}, x,
               fill(ones, 1, x.dtype()));
}

Tensor avg_pool(std::string_view op, int spatial, const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  check_input(op, x, spatial);
  check_floats(op, x);
  const Windows w = pool_windows(op, x, window, options);
  const Shape input = spatial_of(x.shape());
  const bool include = options.count_include_pad;
  return in_computed_dtype(x, [&](const Tensor& given) {
    const Tensor sums = sum_windows(w, given);
    const bool are_equal = counts_are_equal(w, input, include);
    if (SizeChoice::choose(are_equal) && are_equal)
      return sums / fill({}, static_cast<double>(taps_of(w)), sums.dtype());
    return sums / counts(w, input, include, sums.dtype());
  });
}

/// x^(1/p), whose gradient at 0 is 0.
Tensor root(const Tensor& x, double p) {
  if (p == 1) return x;
  const Tensor zero = fill_like(x, 0), at_zero = equal(x, zero);
  const Tensor safe = where(at_zero, fill_like(x, 1), x);
  return where(at_zero, zero, p == 2 ? sqrt(safe) : pow(safe, 1 / p));
}

/// |x|^p, whose gradient at 0 is 0.
Tensor power(const Tensor& x, double p) {
  if (p == 1) return abs(x);
  if (p == 2) return square(x);
  const Tensor zero = fill_like(x, 0), at_zero = equal(x, zero);
  return where(at_zero, zero, pow(abs(where(at_zero, fill_like(x, 1), x)), p));
}

void check_norm(std::string_view op, const Tensor& x, double p) {
  check_input(op, x);
  check_floats(op, x);
  require(p > 0, op, ": p must be positive, got ", p);
}

std::vector<int> spatial_axes(const Tensor& x) {
  std::vector<int> axes;
  for (int i = 1; i < x.shape().rank() - 1; ++i) axes.push_back(i);
  return axes;
}

/// Where the taps that were chosen stand within an example, as flat spatial positions: i64, of the shape of taps.
Tensor positions_of(const Windows& w, const Tensor& taps, const Shape& input) {
  const int count = w.kernel.rank();
  Tensor rest = cast(taps, i64), position = fill_like(rest, 0);
  std::int64_t pitch = 1;
  for (int i = count; i-- > 0;) {
    const Tensor k = mod(rest, size_number(w.kernel[i]));
    rest = floor_divide(rest, size_number(w.kernel[i]));
    const Tensor begin = iota({w.size[i]}, i64) * size_number(w.strides[i]) - extent(w.before[i], i64);
    position = position + (along(begin, i + 1, count + 2) + k * size_number(w.dilations[i])) * extent(pitch, i64);
    pitch = dimension::multiply(pitch, input[i]);
  }
  return position;
}

/// The parts of an adaptive pooling.
struct UnfoldedParts {
  std::int64_t n, m;
  std::int64_t begin(std::int64_t i) const { return i * n / m; }
  std::int64_t end(std::int64_t i) const { return ((i + 1) * n + m - 1) / m; }
};

/// Calls f(x, axis, parts) for one spatial dimension after the other.
template <class F> Tensor adapt(std::string_view op, const Tensor& x, const Sizes& output_size, F f) {
  check_input(op, x);
  require(!output_size.empty(), op, ": the output has no size");
  const int count = x.shape().rank() - 2;
  const Shape size = one_each(op, "sizes of the output", output_size, count, 1);
  return in_computed_dtype(x, [&](Tensor y) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t n = y.shape()[i + 1];
      require(n > 0 && n < std::int64_t{1} << 31, op, ": spatial dimension ", i, " of ", x.spec(),
              " must be known and not empty");
      if (size[i] != n) y = f(y, i + 1, UnfoldedParts{n, size[i]});
    }
    return y;
  });
}

Windows patch_windows(std::string_view op, const Spec& x, const Sizes& sizes, const PatchOptions& o) {
  require(!sizes.empty(), op, ": the windows have no size");
  return windows_over(op, x, one_each(op, "sizes of a window", sizes, x.shape.rank() - 2, 1),
                      {.strides = o.strides, .dilations = o.rates, .padding = o.padding, .paddings = o.paddings});
}

}  // namespace

Tensor max_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return max_pool("max_pool", 0, x, window, options);
}
Tensor max_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return max_pool("max_pool1d", 1, x, window, options);
}
Tensor max_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return max_pool("max_pool2d", 2, x, window, options);
}
Tensor max_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return max_pool("max_pool3d", 3, x, window, options);
}

MaxPoolWithArgmax max_pool_with_argmax(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  constexpr auto op = "max_pool_with_argmax";
  check_input(op, x);
  const Windows w = pool_windows(op, x, window, options);
  const Chosen chosen = choose(w, is_narrow(x.dtype()) ? cast(x, f32) : x);
  const std::int64_t channels = x.shape()[-1];
  const Tensor places = positions_of(w, chosen.taps, spatial_of(x.shape())) * extent(channels, i64) +
                        along(range(channels, i64), x.shape().rank() - 1, x.shape().rank());
  return {is_narrow(x.dtype()) ? cast(chosen.values, x.dtype()) : chosen.values, places};
}

Tensor avg_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return avg_pool("avg_pool", 0, x, window, options);
}
Tensor avg_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return avg_pool("avg_pool1d", 1, x, window, options);
}
Tensor avg_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return avg_pool("avg_pool2d", 2, x, window, options);
}
Tensor avg_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options) {
  return avg_pool("avg_pool3d", 3, x, window, options);
}

Tensor lp_pool(const Tensor& x, const Sizes& window, double p, const PoolingOptions& options) {
  const HostFloats floats;
  check_norm("lp_pool", x, p);
  const Windows w = pool_windows("lp_pool", x, window, options);
  return in_computed_dtype(x, [&](const Tensor& given) { return root(sum_windows(w, power(given, p)), p); });
}

Tensor global_max_pool(const Tensor& x) {
  check_input("global_max_pool", x);
  return reduce_max(x, {.axis = spatial_axes(x)});
}

Tensor global_avg_pool(const Tensor& x) {
  check_input("global_avg_pool", x);
  check_floats("global_avg_pool", x);
  return reduce_mean(x, {.axis = spatial_axes(x)});
}

Tensor global_lp_pool(const Tensor& x, double p) {
  const HostFloats floats;
  check_norm("global_lp_pool", x, p);
  return in_computed_dtype(
      x, [&](const Tensor& given) { return root(reduce_sum(power(given, p), {.axis = spatial_axes(x)}), p); });
}

Tensor adaptive_avg_pool(const Tensor& x, const Sizes& output_size) {
  check_floats("adaptive_avg_pool", x);
  return adapt("adaptive_avg_pool", x, output_size, [](const Tensor& y, int axis, const UnfoldedParts& parts) {
    std::vector<Tensor> means;
    for (std::int64_t i = 0; i < parts.m; ++i)
      means.push_back(reduce_mean(slice_within(y, axis, parts.begin(i), parts.end(i) - parts.begin(i)),
                                  {.axis = {axis}, .keepdims = true}));
    return concat(means, axis);
  });
}

Tensor adaptive_max_pool(const Tensor& x, const Sizes& output_size) {
  return adapt("adaptive_max_pool", x, output_size, [](const Tensor& y, int axis, const UnfoldedParts& parts) {
    std::vector<Tensor> largest;
    for (std::int64_t i = 0; i < parts.m; ++i) {
      const std::int64_t size = parts.end(i) - parts.begin(i);
      Sizes window(static_cast<std::size_t>(y.shape().rank() - 2), 1);
      window[static_cast<std::size_t>(axis - 1)] = size;
      largest.push_back(max_pool(slice_within(y, axis, parts.begin(i), size), window));
    }
    return concat(largest, axis);
  });
}

Tensor max_unpool(const Tensor& x, const Tensor& argmax, const Sizes& output_size) {
  constexpr auto op = "max_unpool";
  check_input(op, x);
  require(argmax.shape() == x.shape() && is_integer(argmax.dtype()), op, ": argmax is ", argmax.spec(),
          ", expected integers of the shape of the input, ", x.spec());
  require(!output_size.empty(), op, ": the output has no size");
  const std::int64_t examples = x.shape()[0], channels = x.shape()[-1];
  const Shape size = one_each(op, "sizes of the output", output_size, x.shape().rank() - 2, 1);
  const std::int64_t whole = dimension::multiply(size.size(), channels);
  const std::int64_t each = dimension::multiply(spatial_of(x.shape()).size(), channels);
  const Tensor within = check_range(cast(argmax, i64), whole, false);
  const Tensor places =
      reshape(within, {examples, each}) + reshape(range(examples, i64), {examples, 1}) * extent(whole, i64);
  return in_computed_dtype(x, [&](const Tensor& given) {
    const std::int64_t all = dimension::multiply(examples, whole);
    const Tensor flat = apply(ScatterAdd{-1, all}, reshape(places, {-1}), reshape(given, {-1}));
    return reshape(flat, with_spatial(x.shape(), size, channels));
  });
}

Tensor extract_patches(const Tensor& x, const Sizes& sizes, const PatchOptions& options) {
  constexpr auto op = "extract_patches";
  check_input(op, x);
  const Windows w = patch_windows(op, x.spec(), sizes, options);
  std::vector<std::array<std::int64_t, 2>> around(1, {0, 0});
  bool pads = false;
  for (int i = 0; i < w.kernel.rank(); ++i) {
    around.push_back({w.before[i], w.after[i]});
    pads = pads || w.before[i] != 0 || w.after[i] != 0;
  }
  around.push_back({0, 0});
  const Tensor patches = apply(Patches{w.kernel, w.strides, w.dilations, w.size}, pads ? pad(x, around) : x);
  return reshape(patches, with_spatial(x.shape(), w.size, dimension::multiply(taps_of(w), x.shape()[-1])));
}

Tensor fold_patches(const Tensor& patches, const Sizes& output_size, const Sizes& sizes, const PatchOptions& options) {
  constexpr auto op = "fold_patches";
  check_input(op, patches);
  const int count = patches.shape().rank() - 2;
  require(!output_size.empty() && !sizes.empty(), op, ": the output or the windows have no size");
  const Shape output = one_each(op, "sizes of the output", output_size, count, 1);
  const Shape kernel = one_each(op, "sizes of a window", sizes, count, 1);
  const auto channels = dimension::divide(patches.shape()[-1], kernel.size());
  require(channels.has_value(), op, ": ", dimension::to_text(patches.shape()[-1]), " channels of ", patches.spec(),
          " are no multiple of the ", kernel.size(), " elements of a window");
  const Spec image{patches.dtype(), with_spatial(patches.shape(), output, *channels)};
  const Windows w = patch_windows(op, image, sizes, options);
  require(spatial_of(patches.shape()) == w.size, op, ": the patches are ", patches.spec(), ", but there are ",
          brackets(w.size), " windows over ", image);
  Shape apart{patches.shape()[0]}, padded;
  for (std::int64_t d : w.size) apart.push_back(d);
  for (std::int64_t d : kernel) apart.push_back(d);
  apart.push_back(*channels);
  for (int i = 0; i < count; ++i) padded.push_back(dimension::add(output[i], dimension::add(w.before[i], w.after[i])));
  Tensor folded = in_computed_dtype(
      reshape(patches, apart), [&](const Tensor& given) { return apply(Fold{w.strides, w.dilations, padded}, given); });
  for (int i = 0; i < count; ++i)
    if (padded[i] != output[i]) folded = slice_within(folded, i + 1, w.before[i], output[i]);
  return folded;
}

}  // namespace gradus
