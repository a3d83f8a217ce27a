/// Rows of a length that is known only at the call: divided among workers where they are long, the same bits always.
#include <algorithm>
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::long_rows_test {
namespace {

using namespace testing_loops;

/// `source` with known sizes instead of s0 and s1.
Graph with_sizes(std::string source, const std::vector<std::int64_t>& sizes) {
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::string name = "s" + std::to_string(k);
    for (std::size_t at = source.find(name); at != std::string::npos; at = source.find(name, at))
      source.replace(at, name.size(), std::to_string(sizes[k]));
  }
  return parse_graph(source);
}

struct Row {
  const char* name;
  std::string source;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row rows[] = {
    {"Sum", "%0 = input : f32[s0]\n%1 = sum{axis=-1} %0 : f32[1]\nreturn %1\n"},
    {"SumOfAFormula",
     "%0 = input : f32[1,s0]\n%1 = exp %0 : f32[1,s0]\n%2 = sum{axis=-1} %1 : f32[1,1]\nreturn %2 %1\n"},
    {"OfNarrowFloats", "%0 = input : f16[s0]\n%1 = sum{axis=-1} %0 : f16[1]\nreturn %1\n"},
    {"OfBytes", "%0 = input : u8[s0]\n%1 = max{axis=-1} %0 : u8[1]\nreturn %1\n"},
    {"OfDoubles", "%0 = input : f64[s0]\n%1 = prod{axis=-1} %0 : f64[1]\nreturn %1\n"},
    {"SeveralOfOneRow",
     "%0 = input : f32[s0]\n%1 = sum{axis=-1} %0 : f32[1]\n%2 = max{axis=-1} %0 : f32[1]\n"
     "%3 = min{axis=-1} %0 : f32[1]\n%4 = add %1 %2 : f32[1]\n%5 = multiply %4 %3 : f32[1]\nreturn %5 %2\n"},
    {"AFewRows", "%0 = input : f32[3,s0]\n%1 = sum{axis=-1} %0 : f32[3,1]\nreturn %1\n"},
    {"TwoPhases",
     "%0 = input : f32[2,s0]\n%1 = max{axis=-1} %0 : f32[2,1]\n%2 = broadcast{shape=[2,s0]} %1 : f32[2,s0]\n"
     "%3 = subtract %0 %2 : f32[2,s0]\n%4 = exp %3 : f32[2,s0]\n%5 = sum{axis=-1} %4 : f32[2,1]\n"
     "%6 = broadcast{shape=[2,s0]} %5 : f32[2,s0]\n%7 = divide %4 %6 : f32[2,s0]\nreturn %7 %5\n"},
    {"OneRowInTwoPhases",
     "%0 = input : f32[1,s0]\n%1 = max{axis=-1} %0 : f32[1,1]\n%2 = broadcast{shape=[1,s0]} %1 : f32[1,s0]\n"
     "%3 = subtract %0 %2 : f32[1,s0]\n%4 = exp %3 : f32[1,s0]\n%5 = sum{axis=-1} %4 : f32[1,1]\nreturn %5\n"},
    {"Columns", "%0 = input : f32[s0,3]\n%1 = sum{axis=-2} %0 : f32[1,3]\nreturn %1\n"},
    {"ColumnsOfSeveral", "%0 = input : bf16[2,s0,3]\n%1 = sum{axis=-2} %0 : bf16[2,1,3]\nreturn %1\n"},
    {"ColumnsAside",
     "%0 = input : f32[s0,3]\n%1 = sum{axis=-2} %0 : f32[1,3]\n%2 = max{axis=-2} %0 : f32[1,3]\nreturn %1 %2\n"},
};

class LongRows : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(All, LongRows, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST_P(LongRows, SameBitsKnownOrNotCompiledOrNotOnAnyThreads) {
  const Graph open = parse_graph(GetParam().source);
  const auto compiled_open = compiled(open), interpreted_open = interpreted(open);
  const auto narrow_open = [&] {
    const cpu_backend::IsaScope narrow(narrowest_isa());
    return compiled(open);
  }();
  for (const std::int64_t n : {0, 1, 17, 512, 513, 1000, 2048, 5001, 32768, 32769, 70001, 600001}) {
    const std::vector<std::int64_t> symbols{n};
    const Graph known = with_sizes(GetParam().source, symbols);
    const auto inputs = random_inputs(known, {}, static_cast<unsigned>(n % 3));
    std::vector<Ref<Buffer>> expected;
    {
      const Threads scope(1);
      expected = run(*interpreted(known), inputs);
    }
    for (const int threads : {1, 2, 7}) {
      const Threads scope(threads);
      const std::string where = text(n, " on ", threads, " threads");
      expect_same(*compiled_open, run(*compiled_open, inputs, symbols), expected, symbols, where + ", compiled");
      expect_same(*interpreted_open, run(*interpreted_open, inputs, symbols), expected, symbols,
                  where + ", interpreted");
      const auto closed = compiled(known);
      expect_same(*closed, run(*closed, inputs), expected, {}, where + ", of known size");
      if (HasFailure()) return;
    }
    const cpu_backend::IsaScope narrow(narrowest_isa());
    const auto closed = compiled(known);
    expect_same(*closed, run(*closed, inputs), expected, {}, text(n, ", of known size, AVX2"));
    expect_same(*narrow_open, run(*narrow_open, inputs, symbols), expected, symbols, text(n, ", AVX2"));
  }
}

/// Whether all kernels that read much are divided among workers.
bool is_divided(const CpuProgram& program, std::int64_t n) {
  const std::int64_t symbols[] = {n};
  const Threads scope(8);
  const auto kernels = program.report(symbols).kernels;
  return std::ranges::all_of(kernels, [](const Kernel& k) { return k.divided || k.bytes_read < 1000; });
}

TEST_P(LongRows, AreDividedAmongWorkers) {
  const Graph open = parse_graph(GetParam().source);
  for (const auto& program : {compiled(open), interpreted(open)}) EXPECT_TRUE(is_divided(*program, 1 << 22));
}

TEST_P(LongRows, PartialResultsAreFew) {
  const Threads scope(1);
  const std::vector<std::int64_t> symbols{1 << 20};
  const auto open = compiled(parse_graph(GetParam().source)), known = compiled(with_sizes(GetParam().source, symbols));
  EXPECT_EQ(open->report(symbols).temporary_bytes, known->report().temporary_bytes);
}

TEST(LongRowsOf, ElementsOfAFewRowsAreDivided) {
  const auto program = compiled(
      parse_graph("%0 = input : f32[2,s0]\n%1 = input : f32[2,1]\n%2 = broadcast{shape=[2,s0]} %1 : f32[2,s0]\n"
                  "%3 = add %0 %2 : f32[2,s0]\nreturn %3\n"));
  EXPECT_TRUE(is_divided(*program, 1 << 22));
}

}  // namespace
}  // namespace gradus::long_rows_test
