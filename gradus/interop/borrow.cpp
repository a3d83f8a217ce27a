/// Where strided memory lies, whether it can be read in place, and the view that it is then. Decision 409 has the
/// reasons.
#include "gradus/interop/borrow.h"
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/buffer.h"

namespace gradus {
namespace {

/// Bytes behind a buffer that kernels read with a whole vector (tensor/buffer.h).
constexpr std::uintptr_t read_behind = 64;

/// More of 8 bytes have no address.
constexpr std::int64_t most_elements = std::int64_t{1} << 59;

struct StridedAxis {
  int axis;
  std::int64_t size, stride;
};

/// The axes that move through memory, slowest first; elements from `low` to `high`, both included, from element [0, 0,
/// ...] on.
struct Layout {
  std::vector<StridedAxis> axes;
  std::int64_t low = 0, high = 0;
  std::int64_t count() const { return high - low + 1; }
};

std::string strides_text(const std::vector<std::int64_t>& strides) {
  TextStream out;
  for (const std::int64_t& each : strides) out << (&each == strides.data() ? "[" : ", ") << each;
  return out.str() + (strides.empty() ? "[]" : "]");
}

Layout layout_of(std::string_view what, const Shape& shape, const std::vector<std::int64_t>& strides) {
  require(static_cast<int>(strides.size()) == shape.rank(), what, ": shape ", shape, " has ", shape.rank(),
          " axes, but there are ", strides.size(), " strides, ", strides_text(strides));
  Layout layout;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    std::int64_t reach = 0, end = 0;
    std::int64_t& side = stride < 0 ? layout.low : layout.high;
    const bool overflows = __builtin_mul_overflow(stride, shape[axis] - 1, &reach) ||
                           __builtin_add_overflow(side, reach, &end) || std::abs(end) >= most_elements;
    require(!overflows, what, ": strides ", strides_text(strides), " reach beyond all memory with shape ", shape);
    side = end;
    if (shape[axis] > 1 && stride != 0) layout.axes.push_back({axis, shape[axis], stride});
  }
  std::ranges::stable_sort(layout.axes, std::ranges::greater(),
                           [](const StridedAxis& each) { return std::abs(each.stride); });
  return layout;
}

/// The reason why the axes do not reach each element from `low` to `high` once; empty: they do.
std::string reason_of_strides(const Layout& layout) {
  std::int64_t step = 1;
  for (auto axis = layout.axes.rbegin(); axis != layout.axes.rend(); ++axis) {
    const std::int64_t stride = std::abs(axis->stride);
    if (stride != step)
      return text("its strides ", stride < step ? "let elements overlap" : "leave gaps", ": that of axis ", axis->axis,
                  " is ", axis->stride, ", expected ", step, " or ", -step, " for memory without gaps");
    step *= axis->size;
  }
  return {};
}

std::string reason_of_alignment(const std::byte* first, DType dtype) {
  const auto size = static_cast<std::uintptr_t>(size_of(dtype));
  const std::uintptr_t beside = reinterpret_cast<std::uintptr_t>(first) % size;
  return beside == 0 ? ""
                     : text("its address is ", beside, " bytes beside a multiple of ", size, ", the size of ", dtype);
}

/// The page of memory that has the last element is there; that the next one is, is not known.
std::string reason_of_end(const std::byte* end, bool padded) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto last = reinterpret_cast<std::uintptr_t>(end) - 1;
  if (padded || last / page == (last + read_behind) / page) return {};
  return text("it ends ", page - 1 - last % page, " bytes before the end of a page of memory, and kernels read up to ",
              read_behind, " bytes behind it; say .padded if they can be read");
}

/// A dense copy in the order of the shape.
Tensor copied(const std::byte* first, const Spec& spec, const std::vector<std::int64_t>& strides) {
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  auto* to = buffer->data<std::byte>();
  const std::int64_t size = size_of(spec.dtype), count = spec.shape.size();
  std::vector<std::int64_t> place(strides.size(), 0);
  std::int64_t from = 0;
  for (std::int64_t i = 0; i < count; ++i, to += size) {
    std::memcpy(to, first + from * size, static_cast<std::size_t>(size));
    for (std::size_t axis = place.size(); axis-- > 0;) {
      from += strides[axis];
      if (++place[axis] < spec.shape[static_cast<int>(axis)]) break;
      from -= strides[axis] * place[axis];
      place[axis] = 0;
    }
  }
  return Tensor::of_buffer(spec, std::move(buffer));
}

/// The memory order of axes as a transpose, directions as a reverse, what repeats as a broadcast.
Tensor viewed(const Tensor& dense, const Layout& layout, const Shape& shape) {
  std::vector<int> by_axis;  // places in memory order, in the order of axes
  for (std::size_t i = 0; i < layout.axes.size(); ++i) by_axis.push_back(static_cast<int>(i));
  std::ranges::sort(by_axis, {}, [&](int place) { return layout.axes[static_cast<std::size_t>(place)].axis; });
  std::vector<int> backwards;
  Shape ones = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) ones[axis] = 1;
  for (std::size_t i = 0; i < by_axis.size(); ++i) {
    const StridedAxis& axis = layout.axes[static_cast<std::size_t>(by_axis[i])];
    ones[axis.axis] = axis.size;
    if (axis.stride < 0) backwards.push_back(static_cast<int>(i));
  }
  Tensor x = std::ranges::is_sorted(by_axis) ? dense : transpose(dense, by_axis);
  if (!backwards.empty()) x = reverse(x, backwards);
  if (x.shape() != ones) x = reshape(x, ones);
  return ones == shape ? x : broadcast_to(x, shape);
}

Tensor in_place(const std::byte* low, const Spec& spec, const Layout& layout,
                const std::shared_ptr<const void>& owner) {
  Ref<Buffer> buffer = Buffer::borrow(const_cast<std::byte*>(low), layout.count() * size_of(spec.dtype), owner);
  Shape dense;
  for (const StridedAxis& each : layout.axes) dense.push_back(each.size);
  const bool is_plain = layout.count() == spec.shape.size() &&
                        std::ranges::is_sorted(layout.axes, {}, &StridedAxis::axis) &&
                        std::ranges::none_of(layout.axes, [](const StridedAxis& each) { return each.stride < 0; });
  if (is_plain) return Tensor::of_buffer(spec, std::move(buffer));
  return viewed(Tensor::of_buffer({spec.dtype, dense}, std::move(buffer)), layout, spec.shape);
}

void check_bounds(std::string_view what, const detail::Borrowable& memory, const Shape& shape, const Layout& layout,
                  const BorrowOptions& options) {
  if (memory.elements < 0) return;
  require(options.offset < memory.elements, what, ": offset ", options.offset, " of a span of ", memory.elements);
  require(!options.strides.empty() || shape.rank() == 0 || options.offset + shape.size() == memory.elements, what,
          ": shape ", shape, " has ", shape.size(), " elements, the span ", memory.elements - options.offset);
  require(options.offset + layout.low >= 0 && options.offset + layout.high < memory.elements, what, ": shape ", shape,
          " with strides ", strides_text(options.strides), " reaches elements ", options.offset + layout.low, " to ",
          options.offset + layout.high, " of a span of ", memory.elements);
}

}  // namespace

Tensor detail::borrow(std::string_view what, const Borrowable& memory, const Spec& spec, const BorrowOptions& options) {
  check_options(what, options);
  require(!spec.shape.is_symbolic() && spec.shape.size() >= 0, what, ": shape ", spec.shape, " is not known");
  require(options.offset < most_elements, what, ": offset ", options.offset, " reaches beyond all memory");
  if (spec.shape.size() == 0) return zeros(spec.shape, spec.dtype);
  const Shape dense = dense_strides(spec.shape);
  const std::vector<std::int64_t> strides =
      options.strides.empty() ? std::vector<std::int64_t>(dense.begin(), dense.end()) : options.strides;
  const Layout layout = layout_of(what, spec.shape, strides);
  check_bounds(what, memory, spec.shape, layout, options);
  require(memory.first != nullptr, what, ": the pointer is null, expected memory of ", spec);
  const std::int64_t size = size_of(spec.dtype);
  const std::byte* const first = static_cast<const std::byte*>(memory.first) + options.offset * size;
  std::string reason = reason_of_alignment(first, spec.dtype);
  if (reason.empty()) reason = reason_of_strides(layout);
  if (reason.empty()) reason = reason_of_end(first + (layout.high + 1) * size, options.padded);
  if (reason.empty()) return in_place(first + layout.low * size, spec, layout, options.owner);
  require(options.copy_if_needed, what, ": this memory of ", spec, " cannot be read in place: ", reason,
          "; or let it be copied: .copy_if_needed = true");
  return copied(first, spec, strides);
}

}  // namespace gradus
