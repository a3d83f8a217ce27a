/// Programs of the interpreted tier against plain loops that spell the numeric contract.
#include "gradus/backend/cpu/run/program.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <random>
#include <thread>
#include "tests/backend/sample_ops.h"
#include "tests/threads.h"

namespace gradus::program_test {
namespace {

using sample::Builder;

template <class T> Ref<Buffer> buffer_of(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  Ref<Buffer> buffer = Buffer::allocate(bytes);
  std::ranges::copy(values, buffer->data<T>());
  return buffer;
}
template <class T> std::vector<T> values_of(const Ref<Buffer>& buffer) {
  const T* first = buffer->data<T>();
  return {first, first + buffer->bytes() / static_cast<std::int64_t>(sizeof(T))};
}
std::vector<float> noise(std::int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(random);
  return values;
}

std::vector<Ref<Buffer>> run(const CpuProgram& program, const std::vector<Ref<Buffer>>& inputs,
                             std::span<const std::int64_t> symbols = {}) {
  std::vector<Ref<Buffer>> outputs(program.graph().outputs.size());
  program.run(inputs, outputs, {.symbols = symbols});
  return outputs;
}
std::shared_ptr<const CpuProgram> compiled(const Graph& graph) {
  return cpu_backend::compile(graph, {.tier = Tier::compiled});
}
std::shared_ptr<const CpuProgram> interpreted(const Graph& graph) {
  verify(graph);
  return cpu_backend::compile(graph, {.tier = Tier::interpreted});
}

// ---------------------------------------------------------------- the contract, as plainly as it can be said

float tree(std::vector<float> lanes) {
  for (std::size_t half = 8; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
float row_sum(std::span<const float> row) {
  if (row.size() > 32768) {
    std::vector<float> partials;
    for (std::size_t at = 0; at < row.size(); at += 32768)
      partials.push_back(row_sum(row.subspan(at, std::min<std::size_t>(32768, row.size() - at))));
    return row_sum(partials);
  }
  std::vector<float> lanes(16);
  for (std::size_t begin = 0; begin < row.size(); begin += 512) {
    std::vector<float> run(16);
    for (std::size_t i = begin; i < std::min(begin + 512, row.size()); ++i) run[i % 16] += row[i];
    for (std::size_t lane = 0; lane < 16; ++lane) lanes[lane] += run[lane];
  }
  return tree(lanes);
}
std::vector<float> column_sum(const std::vector<std::vector<float>>& rows, std::size_t columns) {
  if (rows.size() <= 32) {
    std::vector<float> sum(columns);
    for (const auto& row : rows)
      for (std::size_t i = 0; i < columns; ++i) sum[i] += row[i];
    return sum;
  }
  std::vector<std::vector<float>> partials;
  for (std::size_t at = 0; at < rows.size(); at += 32)
    partials.push_back(column_sum({rows.begin() + static_cast<std::ptrdiff_t>(at),
                                   rows.begin() + static_cast<std::ptrdiff_t>(std::min(at + 32, rows.size()))},
                                  columns));
  return column_sum(partials, columns);
}

/// Compares sums of `rows` rows of `n` numbers, computed by both tiers.
void expect_row_sums(std::int64_t rows, std::int64_t n, const std::vector<float>& values) {
  Builder b;
  const int x = b.input({f32, {rows, n}});
  b.graph.outputs = {b.add(sample::Sum{-1}, {x})};
  for (const auto& program : {interpreted(b.graph), compiled(b.graph)}) {
    const auto sums = values_of<float>(run(*program, {buffer_of(values)})[0]);
    for (std::size_t row = 0; row < sums.size(); ++row)
      EXPECT_EQ(sums[row],
                row_sum(std::span(values).subspan(row * static_cast<std::size_t>(n), static_cast<std::size_t>(n))))
          << n;
  }
}

TEST(Rows, SumsFollowTheContract) {
  for (std::int64_t n :
       {0,    1,    7,    15,   16,   17,   255,  256,  257,   511,   512,   513,   528,   1000,   1024,   1025,  1536,
        2048, 2049, 2560, 4095, 4096, 4097, 4609, 5000, 10000, 32767, 32768, 32769, 32784, 100000, 163840, 524289})
    expect_row_sums(3, n, noise(3 * n));
}

/// More than 512 blocks, whose results form a row of more than one run.
TEST(Rows, SumsOfManyBlocksFollowTheContract) {
  const std::int64_t n = 513 * 32768 + 5;
  std::vector<float> values = noise(n / 64);
  while (std::ssize(values) < n) values.push_back(values[values.size() - static_cast<std::size_t>(n / 64)] * 1.25f);
  for (float& x : values) x = std::remainder(x, 3.0f);
  expect_row_sums(1, n, values);
}

TEST(Interpreted, ColumnSumsFollowTheContract) {
  for (std::int64_t n : {0, 1, 31, 32, 33, 64, 65, 1000, 1024, 1025, 40000})
    for (std::int64_t columns : {1, 5, 300}) {
      if (n * columns > 2000000) continue;
      Builder b;
      const int x = b.input({f32, {2, n, columns}});
      b.graph.outputs = {b.add(sample::Sum{-2}, {x})};
      const std::vector<float> values = noise(2 * n * columns);
      const auto sums = values_of<float>(run(*interpreted(b.graph), {buffer_of(values)})[0]);
      const auto width = static_cast<std::ptrdiff_t>(columns);
      for (std::ptrdiff_t outer = 0; outer < 2; ++outer) {
        std::vector<std::vector<float>> rows;
        for (std::ptrdiff_t row = 0; row < n; ++row)
          rows.emplace_back(values.begin() + (outer * n + row) * width, values.begin() + (outer * n + row + 1) * width);
        const auto expected = column_sum(rows, static_cast<std::size_t>(columns));
        for (std::ptrdiff_t i = 0; i < width; ++i)
          ASSERT_EQ(sums[static_cast<std::size_t>(outer * width + i)], expected[static_cast<std::size_t>(i)])
              << n << ' ' << columns;
      }
    }
}

// ---------------------------------------------------------------- formulas, views, indexes, constants

TEST(Interpreted, FormulasComputeWhatTheySay) {
  Builder b;
  const int x = b.input({f32, {1000}});
  b.graph.outputs = {b.add(sample::Cubic{}, {x})};
  const std::vector<float> values = noise(1000);
  const auto got = values_of<float>(run(*interpreted(b.graph), {buffer_of(values)})[0]);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(got[i], std::fma(values[i] * values[i], values[i], values[i] / 3)) << i;
}

TEST(Interpreted, ConstantsAndIndexesAreComputedWhereTheyAreRead) {
  Builder b;
  const int ramp = b.add(sample::Ramp{{5, 2}}, {});
  const int as_float = b.add(sample::Cast{f32}, {ramp});
  const int half = b.constant({f32, {5, 2}}, 0.5);
  b.graph.outputs = {b.add(sample::Add{}, {as_float, half}), ramp, half};
  const auto program = interpreted(b.graph);
  const auto out = run(*program, {});
  const auto sum = values_of<float>(out[0]);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(sum[i], 3 * static_cast<float>(i) + 1.5f);
  EXPECT_EQ(values_of<std::int64_t>(out[1])[9], 28);
  EXPECT_EQ(values_of<float>(out[2]), std::vector<float>(10, 0.5f));
}

TEST(Interpreted, OutputsMayRepeatAndMayBeInputs) {
  Builder b;
  const int x = b.input({i32, {3}});
  const int y = b.add(sample::Add{}, {x, x});
  b.graph.outputs = {y, x, y};
  const auto in = buffer_of<std::int32_t>({1, 2, 3});
  const auto out = run(*interpreted(b.graph), {in});
  EXPECT_EQ(values_of<std::int32_t>(out[0]), (std::vector<std::int32_t>{2, 4, 6}));
  EXPECT_EQ(out[1].get(), in.get());
  EXPECT_EQ(out[2].get(), out[0].get());
}

TEST(Interpreted, ZeroSizesAreNoWork) {
  Builder b;
  const int x = b.input({f32, {0, 4}});
  const int y = b.add(sample::Add{}, {x, x});
  b.graph.outputs = {y, b.add(sample::Sum{-2}, {y}), b.add(sample::Max{-2}, {y})};
  const auto out = run(*interpreted(b.graph), {buffer_of(std::vector<float>{})});
  EXPECT_EQ(out[0]->bytes(), 0);
  EXPECT_EQ(values_of<float>(out[1]), std::vector<float>(4));
  EXPECT_EQ(values_of<float>(out[2]), std::vector<float>(4, -std::numeric_limits<float>::infinity()));
}

// ---------------------------------------------------------------- properties of programs

/// A bit of everything over [rows, 300].
Graph mixture(std::int64_t rows) {
  Builder b;
  const int x = b.input({f32, {rows, 300}}), y = b.input({f32, {rows, 300}});
  const int product = b.add(sample::Multiply{}, {x, y});
  const int cubic = b.add(sample::Cubic{}, {product});
  const int difference = b.add(sample::Subtract{}, {cubic, x});
  const int sums = b.add(sample::Sum{-1}, {difference});
  const int columns = b.add(sample::Sum{-2}, {cubic});
  const int all = b.add(sample::Max{-1}, {columns});
  b.graph.outputs = {difference, sums, columns, all};
  return b.graph;
}
std::vector<std::vector<float>> results(const CpuProgram& program, std::int64_t rows,
                                        std::span<const std::int64_t> symbols = {}) {
  std::vector<std::vector<float>> values;
  for (const Ref<Buffer>& out :
       run(program, {buffer_of(noise(rows * 300, 1)), buffer_of(noise(rows * 300, 2))}, symbols))
    values.push_back(values_of<float>(out));
  return values;
}

TEST(Program, ThreadsChangeNoBit) {
  const auto program = interpreted(mixture(500));
  std::vector<std::vector<float>> alone;
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    const auto got = results(*program, 500);
    if (threads == 1) alone = got;
    EXPECT_EQ(got, alone) << threads;
  }
}

TEST(Program, TiersAndFusionChangeNoBit) {
  const auto expected = results(*interpreted(mixture(77)), 77);
  EXPECT_EQ(results(*compiled(mixture(77)), 77), expected);
  EXPECT_EQ(results(*cpu_backend::compile(mixture(77), {.disable = {"fuse"}}), 77), expected);
  EXPECT_EQ(results(*cpu_backend::compile(mixture(77), {.disable = {"fold", "simplify", "eliminate", "reuse"}}), 77),
            expected);
  const std::int64_t symbols[] = {77};
  EXPECT_EQ(results(*compiled(mixture(dimension::symbol(0))), 77, symbols), expected);
  EXPECT_LT(compiled(mixture(77))->report().kernels.size(), interpreted(mixture(77))->report().kernels.size());
}

TEST(Program, OneProgramServesAllExtents) {
  const auto dynamic = interpreted(mixture(dimension::symbol(0)));
  for (std::int64_t rows : {1, 7, 64, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 64}) {
    const std::int64_t symbols[] = {rows};
    EXPECT_EQ(results(*dynamic, rows, symbols), results(*interpreted(mixture(rows)), rows)) << rows;
    EXPECT_EQ(dynamic->report(symbols).arena_bytes, interpreted(mixture(rows))->report().arena_bytes) << rows;
  }
}

TEST(Program, SeveralThreadsRunOneProgramAtOnce) {
  const Threads scope(2);
  const auto program = interpreted(mixture(dimension::symbol(0)));
  const std::int64_t fifty[] = {50};
  const auto expected = results(*program, 50, fifty);
  std::vector<std::thread> users;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    users.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::int64_t other[] = {t + 1};
        results(*program, t + 1, other);
        wrong += results(*program, 50, fifty) != expected;
      }
    });
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Program, AnOutputTakesOverADyingInput) {
  Builder b;
  const int x = b.input({f32, {100}}), y = b.input({f32, {100}});
  const int sum = b.add(sample::Add{}, {x, y});
  const int difference = b.add(sample::Subtract{}, {x, sum});
  b.graph.outputs = {sum, difference};
  b.graph.dying = {x, y};
  const auto program = interpreted(b.graph);
  EXPECT_EQ(program->may_overwrite(), (std::vector<int>{1, 0}));  // x is read once more after the sum
  const auto a = noise(100, 1), c = noise(100, 2);
  const auto expected = run(*program, {buffer_of(a), buffer_of(c)});
  const std::vector<Ref<Buffer>> in{buffer_of(a), buffer_of(c)};
  std::vector<Ref<Buffer>> out{in[1], in[0]};
  program->run(in, out);
  EXPECT_EQ(out[0].get(), in[1].get());
  EXPECT_EQ(values_of<float>(out[0]), values_of<float>(expected[0]));
  EXPECT_EQ(values_of<float>(out[1]), values_of<float>(expected[1]));
  EXPECT_EQ(cpu_backend::compile(b.graph, {.disable = {"reuse"}, .tier = Tier::interpreted})->may_overwrite(),
            (std::vector<int>{-1, -1}));
}

TEST(Program, TellsWhatItsKernelsDo) {
  const auto program = interpreted(mixture(10));
  const auto kernels = program->report().kernels;
  ASSERT_EQ(kernels.size(), 6u);
  EXPECT_EQ(kernels[0].ops, std::vector<std::string>{"sample_multiply"});
  EXPECT_EQ(kernels[0].bytes_read, 2u * 10 * 300 * 4);
  EXPECT_EQ(kernels[0].bytes_written, 10u * 300 * 4);
  EXPECT_GT(kernels[0].flops, 0);
  EXPECT_GE(program->report().arena_bytes, 2 * 10 * 300 * 4);
  EXPECT_GT(program->footprint(), 500u);
}

TEST(Compile, UnknownPassesAreNamed) {
  EXPECT_THROW(cpu_backend::compile(mixture(1), {.disable = {"fusion"}}), InvalidArgument);
}

}  // namespace
}  // namespace gradus::program_test
