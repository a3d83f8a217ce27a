/// The targets that a tap contributes to.
#include "gradus/backend/cpu/kernels/windows.h"

namespace gradus::library {
namespace {

std::int64_t floor_of(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return -floor_of(-a, b); }

template <class Make> WindowAxes axes_of(const WindowShapes& shapes, Make make) {
  WindowAxes axes;
  const int count = shapes.kernel.rank();
  for (int i = 0; i < count; ++i) axes[static_cast<std::size_t>(3 - count + i)] = make(i);
  return axes;
}

}  // namespace

WindowAxis::Run WindowAxis::run(std::int64_t k) const {
  const std::int64_t shift = k * tap + offset;
  Run r;
  if (divisor == 1) {
    r.source_step = scale;
    r.target = std::max<std::int64_t>(0, ceil_of(-shift, scale));
    r.source = r.target * scale + shift;
    r.count = std::min(targets - r.target, ceil_of(sources - r.source, scale));
  } else {  // scale is 1
    r.target_step = divisor;
    r.source = std::max<std::int64_t>(0, ceil_of(shift, divisor));
    r.target = r.source * divisor - shift;
    r.count = std::min(ceil_of(targets - r.target, divisor), sources - r.source);
  }
  return r;
}

WindowAxes windows_to_elements(const WindowShapes& s, const Shape& windows, const Shape& elements) {
  return axes_of(s, [&](int i) {
    return WindowAxis{windows[i], elements[i], s.kernel[i], s.strides[i], s.dilations[i], -s.before[i], 1};
  });
}

WindowAxes elements_to_windows(const WindowShapes& s, const Shape& elements, const Shape& windows) {
  return axes_of(s, [&](int i) {
    return WindowAxis{elements[i], windows[i], s.kernel[i], 1, -s.dilations[i], s.before[i], s.strides[i]};
  });
}

}  // namespace gradus::library
