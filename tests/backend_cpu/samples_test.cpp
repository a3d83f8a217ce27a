/// Bilinear samples by their kernel and by the gathers that they stand for: the same bits.
#include <gtest/gtest.h>
#include "tests/backend_cpu/compiled.h"

namespace gradus::samples_test {
namespace {

using namespace testing_loops;

Graph samples(DType t, const std::string& n, int height, int width, int channels, int places, bool zeros) {
  const auto spec = [&](const auto&... sizes) {
    return text(t, "[", n, ((text(",", sizes)) + ... + std::string()), "]");
  };
  const std::string of_places = spec(places);
  return parse_graph(text("%0 = input : ", spec(height, width, channels), "\n%1 = input : ", of_places,
                          "\n%2 = input : ", of_places, "\n%3 = linear_sample{zeros=", zeros ? "true" : "false",
                          "} %0 %1 %2 : ", spec(places, channels), "\nreturn %3\n"));
}

/// Random images, and places in them, at their borders, beyond them, far away and nowhere.
std::vector<Ref<Buffer>> inputs_of(const Graph& graph, std::span<const std::int64_t> symbols, unsigned seed) {
  std::vector<Ref<Buffer>> inputs = random_inputs(graph, symbols, 4 * seed + 3);  // with extreme numbers
  const Shape image = graph[graph.inputs[0]].spec.shape.evaluated(symbols);
  for (int axis : {1, 2})
    with_type(graph[graph.inputs[0]].spec.dtype, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T>) {
        std::mt19937 random(seed);
        const auto size = static_cast<double>(image[axis]);
        T* const at = inputs[static_cast<std::size_t>(axis)]->template data<T>();
        const auto count = inputs[static_cast<std::size_t>(axis)]->bytes() / static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t i = 0; i < count; ++i) {
          const double position = std::uniform_real_distribution<double>(-2, size + 1)(random);
          at[i] = static_cast<T>(i % 7 == 0   ? extreme(static_cast<unsigned>(random()))
                                 : i % 5 == 0 ? std::floor(position)
                                              : position);
        }
      }
    });
  return inputs;
}

void expect_same_bits(const Graph& graph, const std::vector<std::int64_t>& symbols, unsigned seed) {
  const auto inputs = inputs_of(graph, symbols, seed);
  const auto gathers = cpu_backend::compile(graph, {.disable = {"samples"}});
  for (const Value& v : gathers->graph().values) ASSERT_FALSE(v.op && v.op->name == "linear_sample");
  const auto expected = run(*gathers, inputs, symbols);
  for (const Tier tier : {Tier::compiled, Tier::interpreted})
    for (const int threads : {1, 3}) {
      const Threads scope(threads);
      const auto program = cpu_backend::compile(graph, {.tier = tier});
      expect_same(*program, run(*program, inputs, symbols), expected, symbols, text(threads, " threads"));
    }
}

TEST(Samples, HaveTheBitsOfTheirGathers) {
  unsigned seed = 0;
  for (const DType t : {f32, f64})
    for (const bool zeros : {false, true})
      for (const int channels : {1, 2, 3, 4, 17})
        expect_same_bits(samples(t, "2", 6, 9, channels, 131, zeros), {}, ++seed);
}

TEST(Samples, OfImagesOfOnePixelAndOfNone) {
  for (const bool zeros : {false, true}) {
    expect_same_bits(samples(f32, "3", 1, 1, 3, 40, zeros), {}, 1);
    expect_same_bits(samples(f32, "3", 4, 5, 3, 0, zeros), {}, 1);
    expect_same_bits(samples(f32, "3", 4, 5, 0, 7, zeros), {}, 1);
    expect_same_bits(samples(f32, "0", 4, 5, 3, 7, zeros), {}, 1);
  }
}

TEST(Samples, OfAnyNumberOfImages) {
  const Graph graph = samples(f32, "s0", 5, 4, 3, 70, true);
  for (const std::int64_t n : {0, 1, 5}) expect_same_bits(graph, {n}, 1);
}

}  // namespace
}  // namespace gradus::samples_test
