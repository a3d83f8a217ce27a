/// Attention in blocks has the bits of the products around a softmax for which it stands: of every shape and mask, on
/// any number of threads and each instruction set, for sizes known and open.
#include <gtest/gtest.h>
#include "tests/backend_cpu/compiled.h"

namespace gradus::testing_loops {
namespace {

struct Case {
  std::int64_t batch, queries, keys, heads, key_heads, width, value_width;
  bool causal = false;
  std::string mask = {};  // its spec
  DType dtype = f32;
  double scale = 0.25;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dtype << " " << c.batch << " x " << c.queries << " queries of " << c.keys << " keys, " << c.heads
             << "/" << c.key_heads << " heads, " << c.width << " and " << c.value_width << " wide"
             << (c.causal ? ", causal" : "") << (c.mask.empty() ? "" : ", mask ") << c.mask;
}

/// The result and the gradients.
Graph graph_of(const Case& c, bool open = false) {
  const std::string batch = open ? "s0" : std::to_string(c.batch), time = open ? "s1" : std::to_string(c.queries);
  const auto of = [&](const std::string& length, std::int64_t heads, std::int64_t width) {
    return text(c.dtype, "[", batch, ",", length, ",", heads, ",", width, "]");
  };
  const std::string keys = open ? time : std::to_string(c.keys);
  const std::string attributes = text("{scale=", c.scale, "; causal=", c.causal ? "true" : "false",
                                      "; masked=", c.mask.empty() ? "false" : "true", "}");
  const std::string mask = c.mask.empty() ? "" : " %4", y = of(time, c.heads, c.value_width);
  const std::int64_t of_query = c.heads * c.width, of_key = c.key_heads * (c.width + c.value_width);
  const std::string all = open ? text(of_query + of_key, "*s1") : text(c.queries * of_query + c.keys * of_key);
  return parse_graph(text("%0 = input : ", of(time, c.heads, c.width), "\n%1 = input : ",
                          of(keys, c.key_heads, c.width), "\n%2 = input : ", of(keys, c.key_heads, c.value_width),
                          "\n%3 = input : ", y, "\n%4 = input : ", c.mask.empty() ? "f32[]" : c.mask,
                          "\n%5 = attention", attributes, " %0 %1 %2", mask, " : ", y, "\n%6 = attention_gradient",
                          attributes, " %0 %1 %2 %3", mask, " : ", c.dtype, "[", batch, ",", all, "]\nreturn %5 %6\n"));
}

std::vector<Ref<Buffer>> finite_inputs(const Graph& graph, std::span<const std::int64_t> symbols) {
  std::vector<Ref<Buffer>> inputs;
  unsigned seed = 0;
  for (int input : graph.inputs) {
    const Spec& spec = graph[input].spec;
    inputs.push_back(random_buffer({spec.dtype, spec.shape.evaluated(symbols)}, 4 * ++seed));
  }
  return inputs;
}

void expect_blocks_agree(const Graph& graph, std::span<const std::int64_t> symbols = {}) {
  const auto inputs = finite_inputs(graph, symbols);
  const auto composed = compile(graph, {.disable = {"attention"}, .tier = Tier::interpreted});
  for (const Value& v : composed->graph().values) ASSERT_FALSE(v.op && v.op->name.starts_with("attention"));
  const auto expected = run(*composed, inputs, symbols);
  const auto expect = [&](const CompileOptions& options, int threads, const char* where) {
    const Threads scope(threads);
    const auto program = compile(graph, options);
    expect_same(*program, run(*program, inputs, symbols), expected, symbols, where);
  };
  expect({}, 1, "in blocks");
  expect({}, 3, "in blocks, 3 threads");
  expect({.tier = Tier::interpreted}, 1, "in blocks, interpreted");
  expect({.disable = {"attention"}}, 2, "composed");
  const cpu_backend::IsaScope narrow(cpu_backend::Isa::avx2);
  expect({}, 2, "in blocks, AVX2");
}

const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 7, 5, 3, 3, 4, 6},
    {1, 64, 64, 2, 2, 32, 32, true},
    {1, 65, 65, 1, 1, 8, 16, true},
    {2, 130, 130, 4, 2, 16, 16, true},
    {1, 70, 33, 4, 1, 5, 3, true},  // queries behind the last key
    {1, 33, 200, 2, 1, 17, 40},
    {1, 600, 70, 1, 1, 8, 8},  // more queries than a unit has
    {3, 1, 100, 6, 3, 24, 24},
    {2, 5, 0, 2, 1, 4, 4},
    {2, 0, 5, 2, 1, 4, 4, true},
    {0, 5, 5, 2, 2, 4, 4},
    {1, 5, 5, 2, 2, 0, 4},
    {1, 5, 5, 2, 2, 4, 0},
    {2, 9, 3, 2, 1, 4, 4, false, "bool[1,1,9,3]"},  // rows without any key
    {2, 40, 70, 4, 2, 8, 8, true, "bool[2,1,1,70]"},
    {2, 70, 70, 2, 2, 8, 8, false, "f32[1,2,70,70]"},
    {2, 70, 70, 2, 2, 8, 8, true, "f32[2,1,70,1]"},
    {2, 70, 90, 2, 1, 9, 7, true, {}, f64},
    {1, 20, 30, 2, 1, 9, 7, false, "f64[1,2,20,30]", f64},
    {1, 1, 1, 1, 1, 1, 1, false, {}, bf16},
    {2, 7, 5, 3, 3, 4, 6, false, {}, bf16},
    {1, 64, 64, 2, 2, 32, 32, true, {}, bf16},
    {1, 65, 65, 1, 1, 8, 16, true, {}, bf16},
    {2, 131, 131, 4, 2, 17, 15, true, {}, bf16},  // an odd number of queries in a chain over two heads
    {1, 70, 33, 4, 1, 5, 3, true, {}, bf16},
    {1, 33, 201, 2, 1, 17, 40, false, {}, bf16},
    {1, 600, 71, 1, 1, 8, 8, false, {}, bf16},
    {3, 1, 100, 6, 3, 24, 24, false, {}, bf16},
    {2, 5, 0, 2, 1, 4, 4, false, {}, bf16},
    {2, 0, 5, 2, 1, 4, 4, true, {}, bf16},
    {0, 5, 5, 2, 2, 4, 4, false, {}, bf16},
    {1, 5, 5, 2, 2, 0, 4, false, {}, bf16},
    {1, 5, 5, 2, 2, 4, 0, false, {}, bf16},
    {2, 9, 3, 2, 1, 4, 4, false, "bool[1,1,9,3]", bf16},
    {2, 40, 70, 4, 2, 8, 8, true, "bool[2,1,1,70]", bf16},
    {2, 70, 70, 2, 2, 8, 8, true, "f32[2,1,70,1]", bf16},
    {1, 70, 70, 2, 2, 9, 8, false, "f32[1,2,70,70]", bf16},
    {1, 20, 30, 2, 1, 9, 7, false, {}, bf16, -0.3},
    {1, 20, 30, 2, 1, 9, 7, true, {}, bf16, 0.3},
    {1, 20, 30, 2, 1, 9, 7, true, {}, bf16, 0},
};

class AttentionInBlocks : public testing::TestWithParam<Case> {};
TEST_P(AttentionInBlocks, HasTheBitsOfWhatItStandsFor) { expect_blocks_agree(graph_of(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionInBlocks, testing::ValuesIn(cases));

TEST(AttentionOfOpenSizes, HasTheSameBits) {
  for (const DType t : {f32, bf16}) {
    const Graph graph = graph_of({0, 0, 0, 4, 2, 8, 6, true, {}, t}, true);
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{2, 3}, {1, 130}, {3, 64}, {1, 131}})
      expect_blocks_agree(graph, sizes);
  }
}

/// Scores of [2, 4, 512, 512] take 8 MiB.
TEST(AttentionInBlocks, NeedsNoMemoryForScores) {
  const Graph graph = graph_of({2, 512, 512, 4, 4, 16, 16, true});
  const auto program = compile(graph);
  EXPECT_EQ(program->temporary_bytes(), 0);
  EXPECT_GE(compile(graph, {.disable = {"attention"}})->temporary_bytes(), 2 * 4 * 512 * 512 * 4);
}

}  // namespace
}  // namespace gradus::testing_loops
