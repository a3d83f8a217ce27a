/// Numbers of windows, and the padding that they need.
#include "gradus/ops/windows.h"
#include "gradus/ops/window_geometry.h"
#include <algorithm>
#include "gradus/graph/context.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 31;  // of strides, dilations and padding, so that positions are exact

/// The padding that was asked for, of a spatial dimension.
std::array<std::int64_t, 2> asked_padding(const WindowOptions& options, int i) {
  return options.paddings.empty() ? std::array<std::int64_t, 2>{0, 0} : options.paddings[static_cast<std::size_t>(i)];
}

void check_paddings(std::string_view op, const Paddings& paddings, int count) {
  require(paddings.empty() || std::ssize(paddings) == count, op, ": paddings of ", paddings.size(),
          " dimensions, expected ", count);
  for (const auto& [before, after] : paddings)
    for (const std::int64_t n : {before, after})
      require((n >= 0 || (Context::current() && dimension::symbols_in(n) > 0)) && n < most, op,
              ": paddings must not be negative or absurdly large, got {", before, ", ", after, "}");
}

/// Windows over `padded` elements that reach over `reach`; with `ceil` also those that begin within them and the
/// padding before them, `begins`, and reach past the end.
std::int64_t count_windows(std::string_view op, const Spec& x, int i, std::int64_t padded, std::int64_t reach,
                           std::int64_t stride, bool ceil, std::int64_t begins) {
  const std::int64_t room = dimension::subtract(padded, reach);
  const auto too_small = [&] {
    return text(op, ": a window that reaches over ", reach, " elements does not fit into the ",
                dimension::to_text(padded), " (padding included) of spatial dimension ", i, " of ", x);
  };
  if (padded >= 0) {
    if (padded < reach) throw InvalidArgument(too_small());
  } else {
    require_not_negative(room, too_small());
  }
  if (!ceil) return dimension::add(dimension::floor_divide(room, stride), 1);
  const std::int64_t windows = dimension::add(dimension::ceil_divide(room, stride), 1);
  const std::int64_t over = dimension::subtract(windows, dimension::ceil_divide(begins, stride));
  const std::int64_t fewer = dimension::subtract(windows, dimension::minimum(dimension::maximum(over, 0), 1));
  return dimension::maximum(fewer, 1);
}

}  // namespace

Shape spatial_of(const Shape& shape) { return Shape(std::span(shape.begin() + 1, shape.end() - 1)); }

Shape with_spatial(const Shape& shape, const Shape& spatial, std::int64_t channels) {
  Shape out{shape[0]};
  for (std::int64_t d : spatial) out.push_back(d);
  out.push_back(channels);
  return out;
}

Shape one_each(std::string_view op, std::string_view what, const Sizes& given, int count, std::int64_t fallback) {
  require(given.size() <= 1 || std::ssize(given) == count, op, ": ", given.size(), " ", what, " for ", count,
          " spatial dimensions");
  Shape out;
  for (int i = 0; i < count; ++i) {
    const std::int64_t each = given.empty() ? fallback : given[given.size() == 1 ? 0 : static_cast<std::size_t>(i)];
    require(each >= 1 && each < most, op, ": ", what, " must be at least 1, got ", each);
    out.push_back(each);
  }
  return out;
}

namespace {

/// The padding that an input needs for `windows` windows.
std::int64_t same_padding(std::int64_t input, std::int64_t windows, std::int64_t stride, std::int64_t reach) {
  const std::int64_t steps = dimension::multiply(dimension::subtract(windows, 1), stride);
  return dimension::maximum(dimension::subtract(dimension::add(steps, reach), input), 0);
}

}  // namespace

std::int64_t same_before(std::int64_t input, std::int64_t windows, std::int64_t stride, std::int64_t reach) {
  return dimension::floor_divide(same_padding(input, windows, stride, reach), 2);
}

Windows windows_over(std::string_view op, const Spec& x, const Shape& kernel, const WindowOptions& options) {
  const int count = x.shape.rank() - 2;
  require(count >= 1 && count <= 3, op, ": the input is ", x,
          ", expected [batch, spatial..., channels] with one to three spatial dimensions");
  require(kernel.rank() == count, op, ": windows of ", kernel.rank(), " dimensions over the ", count, " of ", x);
  for (std::int64_t k : kernel)
    require(k >= 1 && k < most, op, ": windows must have known sizes of at least 1, got ", brackets(kernel));
  check_paddings(op, options.paddings, count);
  Windows w{.kernel = kernel,
            .strides = one_each(op, "strides", options.strides, count, 1),
            .dilations = one_each(op, "dilations", options.dilations, count, 1)};
  for (int i = 0; i < count; ++i) {
    const std::int64_t input = x.shape[i + 1], stride = w.strides[i], reach = w.reach(i);
    require(reach < most, op, ": windows reach over ", reach, " elements");
    if (options.paddings.empty() && options.padding == Padding::same) {
      const std::int64_t windows = dimension::ceil_divide(input, stride);
      w.before.push_back(same_before(input, windows, stride, reach));
      w.after.push_back(dimension::subtract(same_padding(input, windows, stride, reach), w.before[i]));
      w.size.push_back(windows);
      continue;
    }
    const auto [before, after] = asked_padding(options, i);
    if (input == 0 && before == 0 && after == 0) {  // nothing gives nothing
      w.before.push_back(0);
      w.after.push_back(0);
      w.size.push_back(0);
      continue;
    }
    const std::int64_t padded = dimension::add(input, dimension::add(before, after));
    w.before.push_back(before);
    w.after.push_back(after);
    w.size.push_back(count_windows(op, x, i, padded, reach, stride, options.ceil_mode, dimension::add(input, before)));
  }
  return w;
}

void check_window_attribute(std::string_view op, std::string_view what, const Shape& given, int count,
                            std::int64_t least) {
  require(given.rank() == count, op, ": ", what, " are ", brackets(given), ", expected ", count, " of them");
  for (std::int64_t each : given)
    require((each >= least && each < most) || (least == 0 && dimension::symbols_in(each) > 0), op, ": ", what, " are ",
            brackets(given), ", expected numbers of at least ", least);
}

}  // namespace gradus
