/// Rows that repeat are multiplied once: with the bits that multiplying all of them gives, for all sizes, none and one
/// among them, read in place or as they stand in memory.
#include "tests/backend_cpu/compiled.h"

namespace gradus::testing_loops::repeated_rows_test {
namespace {

struct Type {
  DType dtype;
  const char* constant;
};
constexpr Type types[] = {{f32, "0x3fc00000"}, {f64, "0x3ff8000000000000"}, {bf16, "0x3fc0"}, {i32, "0x3"}};

/// A product of repeated rows of 5, what is made of it and of the rows, a product of that, and one of both as they
/// stand in memory.
Graph graph_of(const Type& type, bool of_constant) {
  const std::string rows = of_constant ? text("constant{", type.constant, "}") : "broadcast{shape=[3,s0,5]} %2";
  std::string graph =
      "%0 = input : T[3,5]\n%1 = input : T[5,5]\n%2 = reshape{shape=[3,1,5]} %0 : T[3,1,5]\n%3 = " + rows +
      " : T[3,s0,5]\n%4 = reshape{shape=[3*s0,5]} %3 : T[3*s0,5]\n"
      "%5 = matmul{transpose_a=false; transpose_b=true} %4 %1 : T[3*s0,5]\n"
      "%6 = reshape{shape=[3,s0,5]} %5 : T[3,s0,5]\n%7 = multiply %6 %3 : T[3,s0,5]\n"
      "%8 = matmul{transpose_a=false; transpose_b=false} %7 %1 : T[3,s0,5]\n"
      "%9 = matmul{transpose_a=true; transpose_b=false} %5 %4 : T[5,5]\nreturn %5 %7 %8 %9\n";
  for (std::size_t at; (at = graph.find("T[")) != std::string::npos;) graph.replace(at, 1, text(type.dtype));
  return parse_graph(graph);
}

TEST(RepeatedRows, HaveTheBitsOfAllRows) {
  for (const Type& type : types)
    for (const bool of_constant : {false, true}) {
      const Graph graph = graph_of(type, of_constant);
      const DType dtype = type.dtype;
      const std::vector<Ref<Buffer>> inputs{random_buffer({dtype, {3, 5}}, 4), random_buffer({dtype, {5, 5}}, 8)};
      for (const std::int64_t size : {0, 1, 2, 33, 700})
        for (const int threads : {1, 2}) {
          const Threads scope(threads);
          const std::vector<std::int64_t> symbols{size};
          const auto plain = cpu_backend::compile(graph, {.disable = {"simplify"}});
          const auto program = cpu_backend::compile(graph);
          expect_same(*program, run(*program, inputs, symbols), run(*plain, inputs, symbols), symbols,
                      text(dtype, ", ", size, " times, ", threads, " threads").c_str());
        }
    }
}

}  // namespace
}  // namespace gradus::testing_loops::repeated_rows_test
