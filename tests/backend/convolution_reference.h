/// Convolutions as the tests want them: their geometry, and chains of fused multiply-adds in the contract's order.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/tensor/shape.h"

namespace gradus::testing_convolutions {

template <class T> T multiply_add(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) return std::fma(a, b, c);
  else {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b) + static_cast<U>(c));
  }
}

/// Two spatial dimensions.
struct Geometry {
  std::array<std::int64_t, 2> in, out, kernel, strides, dilations, before;
  std::int64_t examples, channels, filters, groups;

  std::int64_t inner() const { return channels / groups; }
  std::int64_t columns() const { return filters / groups; }
  /// Where window o reads at tap k, or -1.
  std::int64_t element(std::size_t d, std::int64_t o, std::int64_t k) const {
    const std::int64_t at = o * strides[d] + k * dilations[d] - before[d];
    return at >= 0 && at < in[d] ? at : -1;
  }
  std::int64_t element_row(std::int64_t n, std::int64_t a, std::int64_t b) const {
    return ((n * in[0] + a) * in[1] + b) * channels;
  }
  std::int64_t window_row(std::int64_t n, std::int64_t a, std::int64_t b) const {
    return ((n * out[0] + a) * out[1] + b) * filters;
  }
  std::int64_t elements() const { return examples * in[0] * in[1] * channels; }
  std::int64_t windows() const { return examples * out[0] * out[1] * filters; }
  std::int64_t weights() const { return kernel[0] * kernel[1] * inner() * filters; }
};

/// Calls visit(example, o0, o1, tap, i0, i1), windows outside, taps inside: every place that a tap reads.
template <class Visit> void for_each_place(const Geometry& g, Visit visit) {
  for (std::int64_t n = 0; n < g.examples; ++n)
    for (std::int64_t a = 0; a < g.out[0]; ++a)
      for (std::int64_t b = 0; b < g.out[1]; ++b)
        for (std::int64_t k = 0; k < g.kernel[0] * g.kernel[1]; ++k) {
          const std::int64_t i = g.element(0, a, k / g.kernel[1]), j = g.element(1, b, k % g.kernel[1]);
          if (i >= 0 && j >= 0) visit(n, a, b, k, i, j);
        }
}

template <class T> std::vector<T> convolved(const Geometry& g, const std::vector<T>& x, const std::vector<T>& w) {
  std::vector<T> y(static_cast<std::size_t>(g.windows()));
  for_each_place(g, [&](auto n, auto a, auto b, auto k, auto i, auto j) {
    for (std::int64_t f = 0; f < g.filters; ++f)
      for (std::int64_t c = 0; c < g.inner(); ++c) {
        T& sum = y[static_cast<std::size_t>(g.window_row(n, a, b) + f)];
        const std::int64_t channel = f / g.columns() * g.inner() + c;
        sum = multiply_add(x[static_cast<std::size_t>(g.element_row(n, i, j) + channel)],
                           w[static_cast<std::size_t>((k * g.inner() + c) * g.filters + f)], sum);
      }
  });
  return y;
}

/// Weights are [taps, filters, inner]. Taps outside: that is the order of an element's chain.
template <class T> std::vector<T> transposed(const Geometry& g, const std::vector<T>& y, const std::vector<T>& w) {
  std::vector<T> x(static_cast<std::size_t>(g.elements()));
  for (std::int64_t tap = 0; tap < g.kernel[0] * g.kernel[1]; ++tap)
    for_each_place(g, [&](auto n, auto a, auto b, auto k, auto i, auto j) {
      if (k != tap) return;
      for (std::int64_t c = 0; c < g.channels; ++c)
        for (std::int64_t f = 0; f < g.columns(); ++f) {
          T& sum = x[static_cast<std::size_t>(g.element_row(n, i, j) + c)];
          const std::int64_t filter = c / g.inner() * g.columns() + f;
          sum = multiply_add(y[static_cast<std::size_t>(g.window_row(n, a, b) + filter)],
                             w[static_cast<std::size_t>((k * g.filters + filter) * g.inner() + c % g.inner())], sum);
        }
    });
  return x;
}

template <class T> std::vector<T> by_weights(const Geometry& g, const std::vector<T>& x, const std::vector<T>& dy) {
  std::vector<T> w(static_cast<std::size_t>(g.weights()));
  for_each_place(g, [&](auto n, auto a, auto b, auto k, auto i, auto j) {
    for (std::int64_t f = 0; f < g.filters; ++f)
      for (std::int64_t c = 0; c < g.inner(); ++c) {
        T& sum = w[static_cast<std::size_t>((k * g.inner() + c) * g.filters + f)];
        const std::int64_t channel = f / g.columns() * g.inner() + c;
        sum = multiply_add(x[static_cast<std::size_t>(g.element_row(n, i, j) + channel)],
                           dy[static_cast<std::size_t>(g.window_row(n, a, b) + f)], sum);
      }
  });
  return w;
}

inline std::string listed(const std::array<std::int64_t, 2>& a) { return text("[", a[0], ",", a[1], "]"); }

inline std::string graph_of(std::string_view op, const std::string& type, const Geometry& g,
                            const std::array<std::int64_t, 2>& size, const std::array<Shape, 3>& shapes) {
  return text("%0 = input : ", type, brackets(shapes[0]), "\n%1 = input : ", type, brackets(shapes[1]), "\n%2 = ", op,
              "{strides=", listed(g.strides), "; dilations=", listed(g.dilations), "; before=", listed(g.before),
              "; size=", listed(size), "; groups=", g.groups, "} %0 %1 : ", type, brackets(shapes[2]), "\nreturn %2\n");
}

}  // namespace gradus::testing_convolutions
