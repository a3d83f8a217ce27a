/// A product with weights that its program updates is divided along k, by members of the team that take turns: the bits
/// are those of any other division, for all sizes, open ones too, also where members outnumber parts.
#include "gradus/backend/cpu/kernels/library.h"
#include "tests/backend_cpu/compiled.h"

namespace gradus::testing_loops::turns_test {
namespace {

struct Case {
  std::int64_t m, k, n;
  DType dtype = f32;
  bool transposed = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dtype << " [" << c.m << "," << c.k << "] [" << c.k << "," << c.n << "]"
             << (c.transposed ? " transposed" : "");
}

/// A product and an update of its second factor in place.
Graph graph_of(const Case& c, const std::string& m) {
  const std::string weights = text(c.dtype, "[", c.k, ",", c.n, "]");
  const std::string rows = c.transposed ? text(c.k, ",", m) : text(m, ",", c.k);
  Graph graph = parse_graph(text("%0 = input : ", c.dtype, "[", rows, "]\n%1 = input : ", weights,
                                 "\n%2 = matmul{transpose_a=", c.transposed ? "true" : "false",
                                 "; transpose_b=false} %0 %1 : ", c.dtype, "[", m, ",", c.n,
                                 "]\n%3 = add %1 %1 : ", weights, "\nreturn %2 %3\n"));
  graph.dying = {graph.inputs[1]};
  return graph;
}

class Turns : public testing::TestWithParam<Case> {};

TEST_P(Turns, HaveTheBitsOfOneThread) {
  const Case& c = GetParam();
  const std::vector<std::int64_t> symbols{c.m};
  for (const bool open : {false, true}) {
    const Graph graph = graph_of(c, open ? "s0" : std::to_string(c.m));
    ASSERT_TRUE(library_kernel("matmul").bind(graph, 2, symbols).in_turns);
    const std::vector<Ref<Buffer>> inputs{random_buffer({c.dtype, {c.m, c.k}}, 4),
                                          random_buffer({c.dtype, {c.k, c.n}}, 8)};
    std::vector<Ref<Buffer>> expected;
    {
      const Threads one(1);
      const auto program = cpu_backend::compile(graph, {.disable = {"turns"}});
      expected = run(*program, inputs, symbols);
    }
    for (const int threads : {2, 3, 7, 40}) {
      const Threads scope(threads);
      const auto program = cpu_backend::compile(graph);
      for (int again = 0; again < 3; ++again)
        expect_same(*program, run(*program, inputs, symbols), expected, symbols, text(threads, " threads").c_str());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Turns,
                         testing::Values(Case{16, 784, 128}, Case{64, 784, 128}, Case{1, 1000, 33}, Case{15, 131, 301},
                                         Case{200, 640, 130}, Case{3, 2048, 500}, Case{64, 784, 128, f64},
                                         Case{20, 333, 77, f64}, Case{30, 500, 65, i32}, Case{9, 257, 70, i64},
                                         Case{64, 784, 128, f32, true}, Case{7, 20000, 3}, Case{16, 1024, 128},
                                         Case{25, 2048, 33}, Case{70, 10241, 26}));

TEST(TurnsOfProducts, AreTakenWhereThreadsWouldReadWhatTheOtherUpdates) {
  const auto takes = [](const Case& c, bool updated = true) {
    Graph graph = graph_of(c, std::to_string(c.m));
    if (!updated) graph.dying.clear();
    return library_kernel("matmul").bind(graph, 2, {}).in_turns != nullptr;
  };
  EXPECT_TRUE(takes({64, 784, 128}));
  EXPECT_FALSE(takes({64, 784, 128}, false));
  EXPECT_FALSE(takes({0, 784, 128})) << "there is nothing to do";
  EXPECT_FALSE(takes({784, 784, 128})) << "as many rows as weights have";
  EXPECT_FALSE(takes({64, 4096, 4096})) << "the weights are in no core's cache";
  EXPECT_FALSE(takes({64, 784, 128, bf16})) << "its sums are rounded at their end";
}

}  // namespace
}  // namespace gradus::testing_loops::turns_test
