/// Winograd's convolutions: against exact sums where numbers are whole, against float64 elsewhere; the same bits on any
/// number of threads, either instruction set and either tier, for odd sizes, too, that no rule would give them; and
/// which sizes the rule gives them.
#include "gradus/backend/cpu/kernels/winograd.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/kernels/library.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/graph/graph.h"
#include "tests/backend/convolution_reference.h"
#include "tests/backend/guarded_memory.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::winograd_test {
namespace {

using namespace testing_convolutions;
using cpu_backend::Isa;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Geometry geometry(std::int64_t examples, std::array<std::int64_t, 2> in, std::array<std::int64_t, 2> out,
                  std::array<std::int64_t, 2> before, std::int64_t channels, std::int64_t filters,
                  std::int64_t groups = 1) {
  return {in, out, {3, 3}, {1, 1}, {1, 1}, before, examples, channels, filters, groups};
}

std::string name_of(const Geometry& g) {
  return text(g.examples, " of ", listed(g.in), " to ", listed(g.out), ", before ", listed(g.before), ", ", g.channels,
              " to ", g.filters, " channels in ", g.groups, " groups");
}

Floats normals(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) x = normal(random);
  return numbers;
}
Floats whole_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) x = static_cast<float>(random() % 9) - 4;
  return numbers;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

enum class Direction { forward, by_input, by_weights };
constexpr Direction directions[] = {Direction::forward, Direction::by_input, Direction::by_weights};

template <class T>
std::vector<T> chains(const Geometry& g, Direction direction, const std::vector<T>& a, const std::vector<T>& b) {
  if (direction == Direction::forward) return convolved(g, a, b);
  return direction == Direction::by_input ? transposed(g, a, b) : by_weights(g, a, b);
}
Doubles exact(const Geometry& g, Direction direction, const Floats& a, const Floats& b) {
  return chains(g, direction, Doubles(a.begin(), a.end()), Doubles(b.begin(), b.end()));
}
/// The operands: what is convolved, and weights or windows.
std::int64_t first_size(const Geometry& g, Direction direction) {
  return direction == Direction::by_input ? g.windows() : g.elements();
}
std::int64_t second_size(const Geometry& g, Direction direction) {
  return direction == Direction::by_weights ? g.windows() : g.weights();
}
std::int64_t target_size(const Geometry& g, Direction direction) {
  if (direction == Direction::forward) return g.windows();
  return direction == Direction::by_input ? g.elements() : g.weights();
}
std::int64_t terms_of(const Geometry& g, Direction direction) {
  if (direction == Direction::by_weights) return g.examples * g.out[0] * g.out[1];
  return 9 * (direction == Direction::forward ? g.inner() : g.columns());
}
/// Root mean squares of errors: of `got` as a multiple of that of chains of fused multiply-adds.
double relative_error(const Geometry& g, Direction direction, const Floats& a, const Floats& b, const Floats& got) {
  const Doubles expected = exact(g, direction, a, b);
  const auto sum_of_squares = [&](const Floats& values) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = static_cast<double>(values[i]) - expected[i];
      sum += error * error;
    }
    return sum;
  };
  return std::sqrt(sum_of_squares(got) / sum_of_squares(chains(g, direction, a, b)));
}

/// One call of what the rule would have to choose, with no byte more of scratch than it asks for.
class TilesCall {
 public:
  TilesCall(const Geometry& g, Direction direction) : targets_(target_size(g, direction)) {
    const Shape in{g.in[0], g.in[1]}, out{g.out[0], g.out[1]};
    const library::WindowShapes shapes{{1, 1}, {1, 1}, {g.before[0], g.before[1]}, {3, 3}};
    const library::WindowAxes axes = direction == Direction::by_input ? library::elements_to_windows(shapes, in, out)
                                                                      : library::windows_to_elements(shapes, out, in);
    const auto tiling = library::winograd::Tiling::of(axes);
    if (!tiling) throw InternalError("no geometry of tiles");
    using library::winograd::bind_tiles;
    if (direction == Direction::forward)
      bound_ = bind_tiles({f32, axes, g.examples, g.groups, g.channels, g.filters, 0, 1, 2}, *tiling,
                          {g.inner(), g.filters, 0, g.columns()}, 3);
    else if (direction == Direction::by_input)
      bound_ = bind_tiles({f32, axes, g.examples, g.groups, g.filters, g.channels, 0, 1, 2}, *tiling,
                          {g.filters, g.inner(), g.columns(), 0}, 3);
    else bound_ = bind_tiles({f32, axes, g.examples, g.groups, g.channels, g.filters, 0, 1, 2}, *tiling, 3);
    const bool by_weights = direction == Direction::by_weights;
    first_ = by_weights ? library::run_kernel_convolution : library::run_convolution;
    second_ = by_weights ? library::run_kernel_convolution_second : library::run_convolution_second;
  }

  /// By so many threads, each of which has its share of either part.
  Floats run(const Floats& x, const Floats& w, int team) const {
    Floats y(static_cast<std::size_t>(targets_), std::numeric_limits<float>::quiet_NaN());
    const GuardedMemory shared(bound_.shared_scratch);
    void* const slots[] = {const_cast<float*>(x.data()), const_cast<float*>(w.data()), y.data(), shared.get()};
    const auto run_part = [&](KernelFunction function, std::int64_t extent, std::int64_t scratch_bytes) {
      std::vector<std::thread> threads;
      for (int worker = 0; worker < team; ++worker)
        threads.emplace_back([&, worker] {
          const KernelFloats flush;
          const GuardedMemory scratch(scratch_bytes);
          const KernelArguments arguments{slots, nullptr, scratch.get(), bound_.data.get(), nullptr, 0};
          function(&arguments, extent * worker / team, extent * (worker + 1) / team);
        });
      for (std::thread& thread : threads) thread.join();
    };
    run_part(first_, bound_.extent, bound_.worker_scratch);
    run_part(second_, bound_.second.extent, bound_.second.worker_scratch);
    return y;
  }

 private:
  BoundThunk bound_;
  KernelFunction first_ = nullptr, second_ = nullptr;
  std::int64_t targets_;
};

const Geometry odd_sizes[] = {
    geometry(1, {1, 1}, {1, 1}, {1, 1}, 8, 8),        geometry(2, {1, 9}, {1, 9}, {1, 1}, 9, 15),
    geometry(1, {9, 1}, {9, 1}, {1, 1}, 17, 8),       geometry(3, {5, 7}, {3, 5}, {0, 0}, 24, 33),
    geometry(2, {4, 4}, {6, 6}, {2, 2}, 16, 31),      geometry(1, {4, 5}, {5, 4}, {2, 0}, 13, 67),
    geometry(2, {2, 2}, {12, 3}, {5, 1}, 10, 9),  // most windows see nothing
    geometry(1, {3, 3}, {4, 4}, {0, 0}, 40, 8),       geometry(1, {2, 3}, {11, 9}, {-1, 7}, 8, 12),
    geometry(5, {14, 14}, {14, 14}, {1, 1}, 32, 48),  geometry(2, {7, 9}, {7, 9}, {1, 1}, 30, 48, 3),
    geometry(1, {31, 3}, {30, 2}, {1, 0}, 64, 64),    geometry(1, {8, 8}, {8, 8}, {1, 1}, 96, 128),
    geometry(13, {19, 13}, {18, 13}, {1, 1}, 17, 20),  // several chunks of tiles
    geometry(1, {6, 7}, {6, 7}, {1, 1}, 131, 20),      // parts of channels
};

TEST(Winograd, OfWholeNumbersIsExact) {
  for (const Geometry& g : odd_sizes)
    for (const Direction direction : directions) {
      const Floats x = whole_numbers(first_size(g, direction), 1), w = whole_numbers(second_size(g, direction), 2);
      const Floats expected = chains(g, direction, x, w), got = TilesCall(g, direction).run(x, w, 1);
      ASSERT_EQ(got, expected) << name_of(g) << static_cast<int>(direction);
    }
}

TEST(Winograd, IsNearFloat64AndTheSameOnAnyNumberOfThreads) {
  for (const Geometry& g : odd_sizes)
    for (const Direction direction : directions) {
      const Floats x = normals(first_size(g, direction), 3), w = normals(second_size(g, direction), 4);
      const TilesCall call(g, direction);
      const Floats got = call.run(x, w, 1);
      EXPECT_LT(relative_error(g, direction, x, w, got), terms_of(g, direction) < 200 ? 3 : 1.5) << name_of(g);
      for (const int team : {2, 3, 7}) ASSERT_TRUE(same_bits(call.run(x, w, team), got)) << name_of(g) << team;
      const cpu_backend::IsaScope narrow(narrowest_isa());
      const TilesCall narrow_call(g, direction);
      for (const int team : {1, 2}) ASSERT_TRUE(same_bits(narrow_call.run(x, w, team), got)) << name_of(g) << ", AVX2";
    }
}

TEST(Winograd, OfAnySizesIsExact) {
  std::mt19937 random(5);
  const auto up_to = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random()) % most; };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t groups = i % 3 == 0 ? up_to(3) : 1, most = i % 10 == 0 ? 150 : 33;
    const std::int64_t filters = (7 + up_to(40)) * groups, channels = (7 + up_to(most)) * groups;
    const std::array<std::int64_t, 2> pads{up_to(5) - 2, up_to(5) - 2}, output{up_to(13), up_to(13)},
        input{up_to(13), up_to(13)};
    const Geometry g = geometry(up_to(i % 10 == 5 ? 9 : 2), input, output, pads, channels, filters, groups);
    for (const Direction direction : directions) {
      const Floats x = whole_numbers(first_size(g, direction), 1), w = whole_numbers(second_size(g, direction), 2);
      const Floats expected = chains(g, direction, x, w), got = TilesCall(g, direction).run(x, w, 1 + i % 3);
      ASSERT_EQ(got, expected) << name_of(g) << static_cast<int>(direction);
    }
  }
}

// ---------------------------------------------------------------- in programs

std::string source_of(const Geometry& g, Direction direction, const std::string& type = "f32") {
  const Shape x{g.examples, g.in[0], g.in[1], g.channels}, y{g.examples, g.out[0], g.out[1], g.filters};
  const Shape w{g.kernel[0], g.kernel[1], g.inner(), g.filters};
  if (direction == Direction::forward) return graph_of("convolution", type, g, g.out, {x, w, y});
  if (direction == Direction::by_weights) return graph_of("kernel_convolution", type, g, g.kernel, {x, y, w});
  return graph_of("transposed_convolution", type, g, g.in, {y, {g.kernel[0], g.kernel[1], g.filters, g.inner()}, x});
}

bool is_chosen(const Geometry& g, Direction direction, const std::string& type = "f32") {
  const Graph graph = parse_graph(source_of(g, direction, type));
  const BoundThunk bound = library_kernel(graph[2].op->library_kernel).bind(graph, 2, {});
  const void* call = bound.data.get();
  return library::Way::winograd == (direction == Direction::by_weights
                                        ? static_cast<const library::KernelConvolutionCall*>(call)->way
                                        : static_cast<const library::ConvolutionCall*>(call)->way);
}

Floats run_graph(const std::string& source, const Floats& x, const Floats& w, const CompileOptions& options = {}) {
  const auto buffer = [](const Floats& numbers) {
    return Buffer::borrow(const_cast<float*>(numbers.data()), std::ssize(numbers) * 4);
  };
  const Ref<Buffer> in[] = {buffer(x), buffer(w)};
  Ref<Buffer> out[1];
  const auto program = cpu_backend::compile(parse_graph(source), options);
  program->run(in, out);
  const float* y = out[0]->data<float>();
  return {y, y + program->graph()[2].spec.shape.size()};
}

const Geometry layers[] = {
    geometry(2, {12, 12}, {12, 12}, {1, 1}, 64, 64),
    geometry(1, {21, 20}, {19, 18}, {0, 0}, 64, 72),
    geometry(4, {9, 10}, {9, 12}, {1, 2}, 67, 71),
    geometry(1, {18, 18}, {18, 18}, {1, 1}, 128, 128, 2),
};

TEST(Winograd, HasTheSameBitsInEveryProgram) {
  for (const Geometry& g : layers)
    for (const Direction direction : directions) {
      ASSERT_TRUE(is_chosen(g, direction)) << name_of(g);
      const std::string source = source_of(g, direction);
      const Floats x = normals(first_size(g, direction), 5), w = normals(second_size(g, direction), 6);
      const Floats expected = TilesCall(g, direction).run(x, w, 1);
      for (const int threads : {1, 2, 3}) {
        const Threads scope(threads);
        ASSERT_TRUE(same_bits(run_graph(source, x, w), expected)) << name_of(g) << threads;
        ASSERT_TRUE(same_bits(run_graph(source, x, w, {.tier = Tier::interpreted}), expected)) << name_of(g);
        const cpu_backend::IsaScope narrow(narrowest_isa());
        ASSERT_TRUE(same_bits(run_graph(source, x, w), expected)) << name_of(g) << ", AVX2";
      }
      for (const std::string_view pass : pass_names()) {
        if (pass == "winograd" || &g != layers) continue;
        const CompileOptions without{.disable = {std::string(pass)}};
        ASSERT_TRUE(same_bits(run_graph(source, x, w, without), expected)) << name_of(g) << " without " << pass;
      }
      const Floats direct = run_graph(source, x, w, {.disable = {"winograd"}});
      ASSERT_TRUE(same_bits(direct, chains(g, direction, x, w))) << name_of(g);
      ASSERT_FALSE(same_bits(direct, expected)) << name_of(g);
    }
}

TEST(Winograd, IsLeftOutWhereItWouldNotPay) {
  const auto expect_direct = [](Geometry g, const std::string& type = "f32") {
    for (const Direction direction : directions) EXPECT_FALSE(is_chosen(g, direction, type)) << name_of(g) << type;
  };
  const Geometry layer = layers[0];
  for (const char* type : {"f64", "i32"}) expect_direct(layer, type);
  expect_direct(geometry(0, {14, 14}, {14, 14}, {1, 1}, 64, 64));
  expect_direct(geometry(3, {14, 14}, {14, 14}, {1, 1}, 64, 16));
  expect_direct(geometry(3, {14, 14}, {14, 14}, {1, 1}, 64, 64, 4));
  expect_direct(geometry(3, {5, 5}, {5, 5}, {1, 1}, 64, 64));
  expect_direct(geometry(3, {1, 200}, {1, 200}, {1, 1}, 64, 64));
  expect_direct(geometry(3, {14, 0}, {14, 0}, {1, 1}, 64, 64));
  const Geometry single = geometry(1, {8, 8}, {8, 8}, {1, 1}, 64, 64);
  EXPECT_TRUE(is_chosen(single, Direction::forward));
  EXPECT_FALSE(is_chosen(single, Direction::by_weights));  // too few tiles for so many sums
  Geometry other = layer;
  other.dilations = {1, 2};
  expect_direct(other);
  other = layer;
  other.strides = {2, 2}, other.out = {7, 7};
  expect_direct(other);
  other = layer;
  other.kernel = {3, 5};
  expect_direct(other);
}

/// So that a row of vmap, and the last batch of an epoch, has the bits that it has alone.
TEST(Winograd, DoesNotDependOnOtherExamples) {
  const Geometry three = geometry(3, {12, 12}, {12, 12}, {1, 1}, 64, 64);
  Geometry one = three;
  one.examples = 1;
  const Floats x = normals(three.elements(), 5), w = normals(three.weights(), 6);
  const Floats all = run_graph(source_of(three, Direction::forward), x, w);
  Floats one_by_one;
  for (std::int64_t e = 0; e < 3; ++e) {
    const auto at = x.begin() + e * one.elements();
    const Floats y = run_graph(source_of(one, Direction::forward), Floats(at, at + one.elements()), w);
    one_by_one.insert(one_by_one.end(), y.begin(), y.end());
  }
  EXPECT_TRUE(same_bits(one_by_one, all));
}

TEST(Winograd, SpreadsWhatIsNotFiniteNoFurtherThanATile) {
  const Geometry g = geometry(1, {14, 14}, {14, 14}, {1, 1}, 64, 64);
  Floats x = normals(g.elements(), 5);
  const Floats w = normals(g.weights(), 6), usual = run_graph(source_of(g, Direction::forward), x, w);
  x[static_cast<std::size_t>(g.element_row(0, 6, 9))] = std::numeric_limits<float>::infinity();
  const Floats y = run_graph(source_of(g, Direction::forward), x, w);
  for (std::int64_t a = 0; a < 14; ++a)
    for (std::int64_t b = 0; b < 14; ++b)
      for (std::int64_t f = 0; f < 64; ++f) {
        const auto i = static_cast<std::size_t>(g.window_row(0, a, b) + f);
        const bool sees = std::abs(a - 6) <= 1 && std::abs(b - 9) <= 1;
        const bool has_neighbour = a >= 4 && a <= 7 && b >= 8 && b <= 11;  // whose tile sees it
        EXPECT_FALSE(sees && std::isfinite(y[i])) << a << " " << b;
        EXPECT_TRUE(has_neighbour || y[i] == usual[i]) << a << " " << b;
      }
}

}  // namespace
}  // namespace gradus::winograd_test
