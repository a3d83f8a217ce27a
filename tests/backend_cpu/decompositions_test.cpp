/// Decompositions have the same bits with either instruction set and on any number of threads.
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::testing_loops::decompositions_test {
namespace {

struct DecomposedSize {
  std::int64_t m, n;
};

template <class T> Ref<Buffer> normal_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Ref<Buffer> buffer = Buffer::allocate(count * static_cast<std::int64_t>(sizeof(T)));
  for (std::int64_t i = 0; i < count; ++i) buffer->data<T>()[i] = static_cast<T>(normal(random));
  return buffer;
}

template <class T> void expect_same_decompositions(const DecomposedSize& size) {
  const auto [m, n] = size;
  const std::int64_t k = std::min(m, n);
  const std::string_view type = sizeof(T) == 8 ? "f64" : "f32", tall = m >= n ? "true" : "false";
  const auto spec = [&](auto... extents) {
    std::string listed = text(" : ", type, "[3");
    ((listed += text(",", extents)), ...);
    return listed + "]\n";
  };
  const Graph graph = parse_graph(text(
      "%0 = input", spec(m, n), "%1 = input", spec(n, n), "%2 = qr{tall=", tall, "; full=false} %0", spec(k * (m + n)),
      "%3 = svd{tall=", tall, "; vectors=true} %0", spec(k * (m + n + 1)), "%4 = eigh{vectors=true} %1",
      spec(n * (n + 1)), "%5 = pinv{rcond=-1; hermitian=false} %0", spec(n, m), "%6 = lu %1", spec(n * (n + 1)),
      "%7 = matrix_exp %1", spec(n, n), "%8 = pinv{rcond=-1; hermitian=true} %1", spec(n, n), "%9 = qr{tall=", tall,
      "; full=true} %0", spec(m * (m + n)), "return %2 %3 %4 %5 %6 %7 %8 %9\n"));
  const std::vector<Ref<Buffer>> inputs{normal_numbers<T>(3 * m * n, 1), normal_numbers<T>(3 * n * n, 2)};
  std::vector<Ref<Buffer>> expected;
  for (const auto isa : {narrowest_isa(), *cpu_backend::widest_isa()})
    for (const int threads : {1, 2, 7}) {
      const cpu_backend::IsaScope scope(isa);
      const Threads team(threads);
      const auto program = cpu_backend::compile(graph);
      if (expected.empty()) expected = run(*program, inputs);
      expect_same(*program, run(*program, inputs), expected, {}, text(cpu_backend::name(isa), ' ', threads));
    }
}

TEST(Decompositions, HaveTheBitsOfEitherInstructionSet) {
  for (const DecomposedSize& size :
       {DecomposedSize{1, 1}, {5, 5}, {17, 17}, {33, 20}, {20, 33}, {64, 64}, {97, 97}, {150, 70}, {70, 150}}) {
    SCOPED_TRACE(text(size.m, " x ", size.n));
    expect_same_decompositions<float>(size);
    expect_same_decompositions<double>(size);
  }
}

/// From 192 rows on a team works on a matrix.
TEST(Decompositions, HaveTheBitsOfOneThreadInTeams) {
  expect_same_decompositions<float>({210, 210});
  expect_same_decompositions<float>({331, 200});
  expect_same_decompositions<double>({193, 260});
}

}  // namespace
}  // namespace gradus::testing_loops::decompositions_test
