/// Kernels whose workers meet, or take turns, side by side in one program: the same bits on any number of threads,
/// several runs at a time, for open batches, too.
#include <thread>
#include "tests/backend_cpu/compiled.h"

namespace gradus::testing_loops::meetings_test {
namespace {

/// Convolutions in all directions that are computed in tiles, and a product with weights that are updated.
Graph convolutions_and_turns() {
  const std::string geometry = "{strides=[1,1]; dilations=[1,1]; before=[1,1]; size=", image = " : f32[s0,12,12,64]\n",
                    weights = " : f32[3,3,64,64]\n", by_image = geometry + "[12,12]; groups=1} ",
                    by_weights = geometry + "[3,3]; groups=1} ";
  Graph graph = parse_graph("%0 = input" + image + "%1 = input" + weights + "%2 = input" + weights +
                            "%3 = input : f32[64,784]\n%4 = input : f32[784,128]\n%5 = convolution" + by_image +
                            "%0 %1" + image + "%6 = convolution" + by_image + "%0 %2" + image +
                            "%7 = matmul{transpose_a=false; transpose_b=false} %3 %4 : f32[64,128]\n"
                            "%8 = add %4 %4 : f32[784,128]\n%9 = kernel_convolution" +
                            by_weights + "%0 %5" + weights + "%10 = kernel_convolution" + by_weights + "%0 %6" +
                            weights + "%11 = transposed_convolution" + by_image + "%5 %2" + image + "%12 = add %9 %10" +
                            weights + "return %7 %8 %12 %11\n");
  graph.dying = {graph.inputs[4]};
  return graph;
}

TEST(Meetings, OfKernelsSideBySideKeepTheirBits) {
  const Graph graph = convolutions_and_turns();
  for (const std::vector<std::int64_t>& symbols : {std::vector<std::int64_t>{3}, {1}, {0}}) {
    const auto inputs = random_inputs(graph, symbols, 4);
    std::vector<Ref<Buffer>> expected;
    {
      const Threads one(1);
      expected = run(*cpu_backend::compile(graph), inputs, symbols);
    }
    const auto program = cpu_backend::compile(graph);
    for (const int threads : {2, 3, 5}) {
      const Threads scope(threads);
      for (int again = 0; again < 3; ++again)
        expect_same(*program, run_in_place(*program, inputs, symbols), expected, symbols, text(threads, " threads"));
      std::vector<Ref<Buffer>> got[3];
      {
        std::vector<std::jthread> callers;
        for (auto& each : got) callers.emplace_back([&] { each = run_in_place(*program, inputs, symbols); });
      }
      for (const auto& each : got) expect_same(*program, each, expected, symbols, text(threads, " threads, together"));
    }
  }
}

}  // namespace
}  // namespace gradus::testing_loops::meetings_test
