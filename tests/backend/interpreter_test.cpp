/// The interpreted tier against the oracle on random graphs of every kind of op and type.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/backend/cpu/run/program.h"
#include "tests/reference/oracle.h"
#include "tests/backend_cpu/random_graphs.h"

namespace gradus::interpreter_test {
namespace {

using Numbers = std::vector<double>;

/// Small whole numbers: sums and products of few of them are exact in every type, so what differs is wrong.
std::vector<Numbers> inputs_of(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Numbers> inputs;
  for (int i : graph.inputs) {
    const unsigned limit = graph[i].spec.dtype == boolean ? 2 : 3;
    Numbers& numbers = inputs.emplace_back();
    for (std::int64_t k = 0; k < graph[i].spec.shape.size(); ++k) numbers.push_back(random() % limit);
  }
  return inputs;
}

Ref<Buffer> buffer_of(const Spec& spec, const Numbers& numbers) {
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  with_type(spec.dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < numbers.size(); ++i) buffer->data<T>()[i] = static_cast<T>(numbers[i]);
  });
  return buffer;
}

double element(const Spec& spec, const Buffer& buffer, std::size_t i) {
  return with_type(spec.dtype, [&]<class T>(T) { return static_cast<double>(buffer.data<T>()[i]); });
}

bool agrees(double got, double expected, DType t) {
  if (std::isnan(expected)) return std::isnan(got);
  if (!is_floating(t)) return got == expected;
  const double largest = t == f32 ? 1e30 : 1e300;  // beyond it the types overflow at different places
  return std::abs(expected) > largest || std::abs(got - expected) <= 1e-4 * (1 + std::abs(expected));
}

TEST(Interpreted, AgreesWithTheOracle) {
  int compared = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Shape bases[] = {{5, 6}, {3, 40}, {2, 3, 4}, {70, 3}, {1, 1}, {300}};
    const Graph graph = testing_loops::RandomGraph(seed, bases[seed % 6], false).make(6);
    verify(graph);
    const auto inputs = inputs_of(graph, seed);
    const auto expected = reference::evaluate(graph, inputs);
    std::vector<Ref<Buffer>> in, out(graph.outputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) in.push_back(buffer_of(graph[graph.inputs[k]].spec, inputs[k]));
    cpu_backend::compile(graph, {.tier = Tier::interpreted})->run(in, out);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Spec& spec = graph[graph.outputs[k]].spec;
      for (std::size_t i = 0; i < expected[k].size(); ++i) {
        ASSERT_TRUE(agrees(element(spec, *out[k], i), expected[k][i], spec.dtype))
            << "seed " << seed << " output " << k << " element " << i << ": " << element(spec, *out[k], i)
            << " instead of " << expected[k][i] << "\n"
            << to_text(graph);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 5000);
}

}  // namespace
}  // namespace gradus::interpreter_test
