/// Every window and every tap, one after the other, by their indices: each result is a sum of what the definition
/// names.
#include "tests/reference/oracle_windows.h"
#include <cmath>
#include <functional>
#include <map>
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/window_geometry.h"

namespace gradus::reference {
namespace {

using Numbers = std::vector<double>;
using Index = std::vector<std::int64_t>;
using scalar::Real;

struct Call {
  const Value& v;
  const std::vector<Spec>& specs;
  const std::vector<const Numbers*>& in;

  const Shape& shape(std::size_t operand) const { return specs[operand].shape; }
  double at(std::size_t operand, const Index& index) const;
};

std::size_t flat(const Shape& shape, const Index& index) {
  std::int64_t position = 0;
  for (int i = 0; i < shape.rank(); ++i) position = position * shape[i] + index[static_cast<std::size_t>(i)];
  return static_cast<std::size_t>(position);
}

double Call::at(std::size_t operand, const Index& index) const { return (*in[operand])[flat(shape(operand), index)]; }

void for_each(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    visit(index);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
  }
}

Index joined(std::int64_t first, const Index& middle, std::int64_t last) {
  Index index{first};
  index.insert(index.end(), middle.begin(), middle.end());
  index.push_back(last);
  return index;
}

struct Geometry {
  Shape strides, dilations, before, elements, windows, kernel;

  /// Where tap k of window o stands; whether that is an element.
  bool element(const Index& o, const Index& k, Index& i) const {
    i.clear();
    bool inside = true;
    for (int a = 0; a < strides.rank(); ++a) {
      const auto at = static_cast<std::size_t>(a);
      i.push_back(o[at] * strides[a] + k[at] * dilations[a] - before[a]);
      inside = inside && i[at] >= 0 && i[at] < elements[a];
    }
    return inside;
  }
  /// Calls visit(window, tap, its number, element) for every tap that stands on an element.
  void for_each_tap(const std::function<void(const Index&, const Index&, std::int64_t, const Index&)>& visit) const {
    for_each(windows, [&](const Index& o) {
      std::int64_t number = 0;
      for_each(kernel, [&](const Index& k) {
        Index i;
        if (element(o, k, i)) visit(o, k, number, i);
        ++number;
      });
    });
  }
};

Shape kernel_of(const Shape& weights) { return Shape(std::span(weights.begin(), weights.end() - 2)); }

double add_product(double sum, double a, double b, DType t) { return (Real(sum, t) + Real(a, t) * Real(b, t)).v; }

/// The three maps of convolution are one sum over examples, taps, and pairs of channels of a group.
void for_each_term(const Geometry& g, std::int64_t examples, std::int64_t channels, std::int64_t filters,
                   std::int64_t groups,
                   const std::function<void(const Index& x, const Index& k, std::int64_t c, const Index& y)>& visit) {
  const std::int64_t in = channels / groups, out = filters / groups;
  for (std::int64_t n = 0; n < examples; ++n)
    g.for_each_tap([&](const Index& o, const Index& k, std::int64_t, const Index& i) {
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t f = 0; f < filters; ++f) visit(joined(n, i, f / out * in + c), k, c, joined(n, o, f));
    });
}

Index weight_index(const Index& k, std::int64_t a, std::int64_t b) {
  Index index = k;
  index.push_back(a);
  index.push_back(b);
  return index;
}

Numbers zeros_of(const Value& v) { return Numbers(static_cast<std::size_t>(v.spec.shape.size())); }

Numbers convolution(const Call& call) {
  const Convolution& op = *call.v.op.as<Convolution>();
  const Shape &x = call.shape(0), &w = call.shape(1);
  const Geometry g{op.strides, op.dilations, op.before, spatial_of(x), op.size, kernel_of(w)};
  Numbers result = zeros_of(call.v);
  for_each_term(g, x[0], x[-1], w[-1], op.groups, [&](const Index& i, const Index& k, std::int64_t c, const Index& o) {
    double& sum = result[flat(call.v.spec.shape, o)];
    sum = add_product(sum, call.at(0, i), call.at(1, weight_index(k, c, o.back())), call.v.spec.dtype);
  });
  return result;
}

Numbers transposed_convolution(const Call& call) {
  const TransposedConvolution& op = *call.v.op.as<TransposedConvolution>();
  const Shape &y = call.shape(0), &w = call.shape(1), &x = call.v.spec.shape;
  const Geometry g{op.strides, op.dilations, op.before, op.size, spatial_of(y), kernel_of(w)};
  Numbers result = zeros_of(call.v);
  for_each_term(g, x[0], x[-1], y[-1], op.groups, [&](const Index& i, const Index& k, std::int64_t c, const Index& o) {
    double& sum = result[flat(x, i)];
    sum = add_product(sum, call.at(0, o), call.at(1, weight_index(k, o.back(), c)), call.v.spec.dtype);
  });
  return result;
}

Numbers kernel_convolution(const Call& call) {
  const KernelConvolution& op = *call.v.op.as<KernelConvolution>();
  const Shape &x = call.shape(0), &y = call.shape(1);
  const Geometry g{op.strides, op.dilations, op.before, spatial_of(x), spatial_of(y), op.size};
  Numbers result = zeros_of(call.v);
  for_each_term(g, x[0], x[-1], y[-1], op.groups, [&](const Index& i, const Index& k, std::int64_t c, const Index& o) {
    double& sum = result[flat(call.v.spec.shape, weight_index(k, c, o.back()))];
    sum = add_product(sum, call.at(0, i), call.at(1, o), call.v.spec.dtype);
  });
  return result;
}

/// Calls visit(element of x, window of y, tap) for every example, channel and tap.
void for_each_chosen(const Geometry& g, const Shape& shape,
                     const std::function<void(const Index&, const Index&, std::int64_t)>& visit) {
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < shape[-1]; ++c)
      g.for_each_tap([&](const Index& o, const Index&, std::int64_t tap, const Index& i) {
        visit(joined(n, i, c), joined(n, o, c), tap);
      });
}

Numbers window_argmax(const Call& call) {
  const WindowArgmax& op = *call.v.op.as<WindowArgmax>();
  const Shape &x = call.shape(0), &y = call.v.spec.shape;
  const Geometry g{op.strides, op.dilations, op.before, spatial_of(x), op.size, op.window};
  Numbers taps(zeros_of(call.v).size(), -1), best = zeros_of(call.v);
  for_each_chosen(g, x, [&](const Index& i, const Index& o, std::int64_t tap) {
    const std::size_t at = flat(y, o);
    const double value = call.at(0, i);
    const bool better = value > best[at] || (std::isnan(value) && !std::isnan(best[at]));
    if (taps[at] >= 0 && !better) return;
    best[at] = value;
    taps[at] = static_cast<double>(tap);
  });
  return taps;
}

Numbers window_select(const Call& call) {
  const WindowSelect& op = *call.v.op.as<WindowSelect>();
  const Shape& x = call.shape(0);
  const Geometry g{op.strides, op.dilations, op.before, spatial_of(x), spatial_of(call.shape(1)), op.window};
  Numbers result = zeros_of(call.v);
  for_each_chosen(g, x, [&](const Index& i, const Index& o, std::int64_t tap) {
    if (call.at(1, o) == static_cast<double>(tap)) result[flat(call.v.spec.shape, o)] = call.at(0, i);
  });
  return result;
}

Numbers window_deposit(const Call& call) {
  const WindowDeposit& op = *call.v.op.as<WindowDeposit>();
  const Shape& y = call.shape(0);
  const Geometry g{op.strides, op.dilations, op.before, op.size, spatial_of(y), op.window};
  Numbers result = zeros_of(call.v);
  for_each_chosen(g, y, [&](const Index& i, const Index& o, std::int64_t tap) {
    double& sum = result[flat(call.v.spec.shape, i)];
    if (call.at(1, o) == static_cast<double>(tap)) sum = scalar::wrapped(sum + call.at(0, o), call.v.spec.dtype).v;
  });
  return result;
}

Numbers fold(const Call& call) {
  const Fold& op = *call.v.op.as<Fold>();
  const Shape& patches = call.shape(0);
  const auto count = static_cast<std::size_t>(op.strides.rank());
  const Shape windows(std::span(patches.begin() + 1, count)), window(std::span(patches.begin() + 1 + count, count));
  Shape before = op.strides;
  for (int i = 0; i < before.rank(); ++i) before.set(i, 0);
  const Geometry g{op.strides, op.dilations, before, op.size, windows, window};
  Numbers result = zeros_of(call.v);
  for (std::int64_t n = 0; n < patches[0]; ++n)
    for (std::int64_t c = 0; c < patches[-1]; ++c)
      g.for_each_tap([&](const Index& o, const Index& k, std::int64_t, const Index& i) {
        Index from = o;
        from.insert(from.end(), k.begin(), k.end());
        double& sum = result[flat(call.v.spec.shape, joined(n, i, c))];
        sum = scalar::wrapped(sum + call.at(0, joined(n, from, c)), call.v.spec.dtype).v;
      });
  return result;
}

}  // namespace

Numbers over_windows(const Value& v, const std::vector<Spec>& specs, const std::vector<const Numbers*>& in) {
  static const std::map<std::string_view, Numbers (*)(const Call&)> kernels{
      {"convolution", convolution},
      {"transposed_convolution", transposed_convolution},
      {"kernel_convolution", kernel_convolution},
      {"window_argmax", window_argmax},
      {"window_select", window_select},
      {"window_deposit", window_deposit},
      {"fold", fold}};
  const auto found = kernels.find(v.op->library_kernel);
  internal_check(found != kernels.end(), "the oracle has no kernel `", v.op->library_kernel, "`");
  return found->second({v, specs, in});
}

}  // namespace gradus::reference
