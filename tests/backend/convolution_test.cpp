/// Convolutions of random geometry against chains of fused multiply-adds in the contract's order, bit for bit: by
/// nothing, by the input, by the weights; few and many channels, groups, strides, dilations, sizes of zero.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/program.h"
#include "gradus/base/thread_pool.h"
#include "gradus/graph/graph.h"

namespace gradus {
namespace {

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

std::string listed(const std::array<std::int64_t, 2>& a) { return text("[", a[0], ",", a[1], "]"); }

std::string graph_of(std::string_view op, const std::string& type, const Geometry& g,
                     const std::array<std::int64_t, 2>& size, const std::array<Shape, 3>& shapes) {
  return text("%0 = input : ", type, brackets(shapes[0]), "\n%1 = input : ", type, brackets(shapes[1]), "\n%2 = ", op,
              "{strides=", listed(g.strides), "; dilations=", listed(g.dilations), "; before=", listed(g.before),
              "; size=", listed(size), "; groups=", g.groups, "} %0 %1 : ", type, brackets(shapes[2]), "\nreturn %2\n");
}

/// `are_finite`: in all ways; else in those that compute no product with a tap outside of the input.
template <class T>
void expect_bits(const std::string& source, const std::vector<T>& a, const std::vector<T>& b,
                 const std::vector<T>& expected, bool are_finite = true) {
  const auto buffer =
      [](const std::vector<T>& numbers) {  // without padding: AddressSanitizer sees what reads behind it
        return Buffer::borrow(const_cast<T*>(numbers.data()), static_cast<std::int64_t>(numbers.size() * sizeof(T)));
      };
  const Ref<Buffer> in[] = {buffer(a), buffer(b)};
  struct Way {
    int threads;
    cpu_backend::Isa isa = cpu_backend::isa();
    std::vector<std::string> disable = {};
  };
  using cpu_backend::Isa;
  for (const Way& way : {Way{1}, Way{2}, Way{5}, Way{2, Isa::avx2}, Way{2, cpu_backend::isa(), {"strips"}},
                         Way{2, cpu_backend::isa(), {"depthwise"}}, Way{2, Isa::avx2, {"strips", "depthwise"}}}) {
    if (!are_finite && std::ranges::find(way.disable, "depthwise") != way.disable.end()) continue;
    const int threads = way.threads;
    set_num_threads(threads);
    const cpu_backend::IsaScope isa(way.isa);
    Ref<Buffer> out[1];
    compile(parse_graph(source), {.disable = way.disable})->run(in, out);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const T got = out[0]->template data<T>()[i];
      ASSERT_EQ(std::memcmp(&got, &expected[i], sizeof(T)), 0)
          << "element " << i << " is " << got << ", expected " << expected[i] << ", " << threads << " threads"
          << (way.disable.empty() ? "" : ", without " + way.disable.back())
          << (way.isa == Isa::avx2 ? ", AVX2\n" : "\n") << source;
    }
  }
}

class RandomGeometry {
 public:
  explicit RandomGeometry(unsigned seed) : random_(seed) {}

  Geometry make() {
    Geometry g{};
    g.examples = below(4);
    const bool depthwise = below(2) == 0;
    g.groups = depthwise ? 1 + below(45) : 1 + below(3);
    g.channels = g.groups * (depthwise ? 1 : one_of({1, 2, 3, 7, 16, 33}));
    g.filters = g.groups * (depthwise ? 1 : one_of({1, 2, 5, 16, 31, 64}));
    for (std::size_t d = 0; d < 2; ++d) {
      g.in[d] = below(12);
      g.kernel[d] = one_of({1, 2, 3, 3, 4, 5, 7});
      g.strides[d] = 1 + below(3);
      g.dilations[d] = 1 + below(2);
      g.before[d] = below(4);
      g.out[d] = below(12);
    }
    return g;
  }
  template <class T> std::vector<T> numbers(std::int64_t count) {
    std::vector<T> numbers(static_cast<std::size_t>(count));
    for (T& x : numbers) {
      if constexpr (std::is_floating_point_v<T>) x = std::normal_distribution<T>()(random_);
      else x = static_cast<T>((static_cast<std::uint64_t>(random_()) << 32) | random_());
    }
    return numbers;
  }

 private:
  std::int64_t below(unsigned n) { return static_cast<std::int64_t>(random_() % n); }
  std::int64_t one_of(std::initializer_list<std::int64_t> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  std::mt19937 random_;
};

template <class T> class ConvolutionOf : public testing::Test {
 public:
  static std::string type() {
    const bool wide = sizeof(T) == 8;
    return std::is_floating_point_v<T> ? (wide ? "f64" : "f32") : (wide ? "i64" : "i32");
  }
  static void check(RandomGeometry& random, const Geometry& g) {
    const Shape x{g.examples, g.in[0], g.in[1], g.channels}, y{g.examples, g.out[0], g.out[1], g.filters};
    const Shape w{g.kernel[0], g.kernel[1], g.inner(), g.filters};
    const Shape turned{g.kernel[0], g.kernel[1], g.filters, g.inner()};
    const auto xs = random.numbers<T>(g.elements()), ys = random.numbers<T>(g.windows());
    const auto ws = random.numbers<T>(g.weights());
    expect_bits(graph_of("convolution", type(), g, g.out, {x, w, y}), xs, ws, convolved(g, xs, ws));
    expect_bits(graph_of("transposed_convolution", type(), g, g.in, {y, turned, x}), ys, ws, transposed(g, ys, ws));
    expect_bits(graph_of("kernel_convolution", type(), g, g.kernel, {x, y, w}), xs, ys, by_weights(g, xs, ys));
  }
  void TearDown() override { set_num_threads(2); }
};
using Types = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ConvolutionOf, Types);

TYPED_TEST(ConvolutionOf, RandomGeometryIsChainsInOrder) {
  RandomGeometry random(5);
  for (int i = 0; i < 60; ++i) {
    this->check(random, random.make());
    if (this->HasFatalFailure()) return;
  }
}

/// As in networks: rows of whole cache lines, more windows than are packed at once, the first layer's few channels.
TYPED_TEST(ConvolutionOf, LayersAreChainsInOrder) {
  const Geometry layers[] = {
      {{17, 16}, {17, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3, 32, 32, 32},
      {{16, 18}, {8, 9}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, 3, 64, 64, 64},
      {{4, 4}, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 5, 272, 272, 272},
      {{28, 27}, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {0, 1}, 2, 3, 32, 1},
      {{20, 20}, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 1, 32, 1},
      {{15, 14}, {15, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 24, 40, 1},
      {{30, 31}, {28, 29}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, 2, 16, 33, 1},   // read in place
      {{25, 26}, {12, 12}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, 9, 32, 70, 2},   // of groups, too
      {{40, 37}, {40, 37}, {5, 3}, {1, 1}, {2, 2}, {4, 2}, 1, 48, 100, 1},  // weights that are packed, parts of images
      {{1, 300}, {1, 150}, {1, 4}, {1, 2}, {1, 1}, {0, 1}, 1, 64, 17, 1},   // one line
  };
  RandomGeometry random(7);
  for (const Geometry& g : layers) {
    this->check(random, g);
    if (this->HasFatalFailure()) return;
  }
}

/// A tap outside of the input is no product with zero: an infinite weight spoils no border.
TEST(Depthwise, SkipsTapsThatReadNothing) {
  const Geometry g{{3, 3}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 16, 16, 16};
  std::vector<float> x(static_cast<std::size_t>(g.elements()), 1), w(static_cast<std::size_t>(g.weights()), 1);
  for (std::size_t c = 0; c < 16; ++c) w[c] = std::numeric_limits<float>::infinity();  // the first tap
  const Shape images{1, 3, 3, 16}, weights{3, 3, 1, 16};
  expect_bits(graph_of("convolution", "f32", g, g.out, {images, weights, images}), x, w, convolved(g, x, w), false);
}

}  // namespace
}  // namespace gradus
