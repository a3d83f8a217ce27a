/// Convolutions of random geometry against chains of fused multiply-adds in the contract's order, bit for bit: by
/// nothing, by the input, by the weights; few and many channels, groups, strides, dilations, sizes of zero.
/// And that depthwise ones keep to the memory that they ask for.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <random>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/kernels/convolution.h"
#include "gradus/backend/cpu/run/program.h"
#include "gradus/base/thread_pool.h"
#include "gradus/graph/graph.h"
#include "tests/backend/convolution_reference.h"
#include "tests/backend/guarded_memory.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::convolution_test {
namespace {

using namespace testing_convolutions;

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
  for (const Way& way : {Way{1}, Way{2}, Way{5}, Way{2, narrowest_isa()}, Way{2, cpu_backend::isa(), {"strips"}},
                         Way{2, cpu_backend::isa(), {"depthwise"}}, Way{2, narrowest_isa(), {"strips", "depthwise"}}}) {
    if (!are_finite && std::ranges::find(way.disable, "depthwise") != way.disable.end()) continue;
    const int threads = way.threads;
    const Threads scope(threads);
    const cpu_backend::IsaScope isa(way.isa);
    Ref<Buffer> out[1];
    cpu_backend::compile(parse_graph(source), {.disable = way.disable})->run(in, out);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const T got = out[0]->template data<T>()[i];
      ASSERT_EQ(std::memcmp(&got, &expected[i], sizeof(T)), 0)
          << "element " << i << " is " << got << ", expected " << expected[i] << ", " << threads << " threads"
          << (way.disable.empty() ? "" : ", without " + way.disable.back()) << ", " << name(way.isa) << '\n'
          << source;
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
      else {
        const std::uint64_t high = random_();
        x = static_cast<T>(high << 32 | random_());
      }
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
  constexpr std::int64_t far = (std::int64_t{1} << 30) - 8;
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
      {{8, 8}, {8, 8}, {2, 2}, {1, 1}, {far, far}, {0, 0}, 16, 4, 8, 1},    // 2^64 bytes from tap to tap
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

TEST(Depthwise, KeepsToItsScratch) {
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 3}, {7, 7}, {1, 7}, {7, 1}}) {
    const Geometry g{{9, 9}, {10 - height, 10 - width}, {height, width}, {1, 1}, {1, 1}, {0, 0}, 2, 5, 5, 5};
    const Shape in{9, 9}, out{g.out[0], g.out[1]};
    const library::WindowShapes shapes{{1, 1}, {1, 1}, {0, 0}, {height, width}};
    library::ConvolutionCall call{f32, library::windows_to_elements(shapes, out, in), 2, 5, 5, 5, 0, 1, 2};
    const BoundThunk bound = library::bind_depthwise(call);
    RandomGeometry random(3);
    auto x = random.numbers<float>(g.elements()), w = random.numbers<float>(g.weights());
    std::vector<float> y(static_cast<std::size_t>(g.windows()));
    const GuardedMemory scratch(bound.worker_scratch);
    void* const slots[] = {x.data(), w.data(), y.data()};
    const KernelArguments arguments{slots, nullptr, scratch.get(), nullptr, nullptr, 0};
    library::run_depthwise(&arguments, call, 0, bound.extent);
    EXPECT_EQ(y, convolved(g, x, w)) << height << " x " << width;
  }
}

}  // namespace
}  // namespace gradus::convolution_test
