/// Generated loops against the interpreter, bit for bit.
#include <algorithm>
#include <thread>
#include "tests/backend_cpu/compiled.h"
#include "tests/backend_cpu/random_graphs.h"

namespace gradus::loops_test {
namespace {

using namespace testing_loops;

TEST(Loops, ChainsOfEachType) {
  for (const std::int64_t n : {0, 1, 7, 16, 17, 64, 1000, 40000}) {
    Graph graph;
    for (const DType t : all_dtypes) {
      if (t == boolean) continue;
      const Spec spec{t, {n}};
      for (int k = 0; k < 2; ++k) graph.inputs.push_back(graph.add({.spec = spec}));
      const int a = graph.inputs[graph.inputs.size() - 2], b = graph.inputs.back();
      const int sum = graph.add({.op = parse_op("add", ""), .in = {a, b}, .spec = spec});
      const int product = graph.add({.op = parse_op("multiply", ""), .in = {sum, a}, .spec = spec});
      graph.outputs.push_back(sum);
      graph.outputs.push_back(graph.add({.op = parse_op("divide", ""), .in = {product, b}, .spec = spec}));
    }
    expect_all_ways_agree(graph);
    if (HasFatalFailure()) return;
  }
}

TEST(Loops, SoftmaxOfShortRows) {
  expect_all_ways_agree(parse_graph(R"(
%0 = input : f32[64,10]
%1 = max{axis=-1} %0 : f32[64,1]
%2 = broadcast{shape=[64,10]} %1 : f32[64,10]
%3 = subtract %0 %2 : f32[64,10]
%4 = exp %3 : f32[64,10]
%5 = sum{axis=-1} %4 : f32[64,1]
%6 = broadcast{shape=[64,10]} %5 : f32[64,10]
%7 = divide %4 %6 : f32[64,10]
%8 = log %5 : f32[64,1]
%9 = sum{axis=-2} %7 : f32[1,10]
return %7 %8 %9
)"));
}

/// Normalisation over rows, forward and backward: sums beside stored elements, in strips of columns of every width.
TEST(Loops, ColumnSumsBesideElements) {
  struct Sizes {
    const char* type;
    std::int64_t rows, columns;
  };
  const Sizes all[] = {{"f32", 33, 1},   {"f32", 70, 16},  {"f32", 33, 17}, {"f32", 64, 64},  {"f32", 70, 100},
                       {"f32", 33, 272}, {"f32", 1, 4100}, {"f64", 70, 17}, {"f64", 33, 128}, {"bf16", 33, 100}};
  for (const auto& [type, rows, columns] : all) {
    std::string source = R"(
%0 = input : T[R,C]
%1 = input : T[R,C]
%2 = sum{axis=-2} %0 : T[1,C]
%3 = broadcast{shape=[R,C]} %2 : T[R,C]
%4 = subtract %0 %3 : T[R,C]
%5 = square %4 : T[R,C]
%6 = sum{axis=-2} %5 : T[1,C]
%7 = broadcast{shape=[R,C]} %6 : T[R,C]
%8 = multiply %4 %7 : T[R,C]
%9 = less %8 %1 : bool[R,C]
%10 = where %9 %1 %8 : T[R,C]
%11 = multiply %10 %4 : T[R,C]
%12 = sum{axis=-2} %10 : T[1,C]
%13 = sum{axis=-2} %11 : T[1,C]
%14 = max{axis=-2} %8 : T[1,C]
%15 = broadcast{shape=[R,C]} %12 : T[R,C]
%16 = add %10 %15 : T[R,C]
return %16 %13 %14
)";
    const auto put = [&](char name, const std::string& value) {
      for (std::size_t at = 0; (at = source.find(name, at)) != std::string::npos; at += value.size())
        source.replace(at, 1, value);
    };
    put('T', type);
    put('R', std::to_string(rows));
    put('C', std::to_string(columns));
    expect_all_ways_agree(parse_graph(source));
    if (HasFatalFailure()) return;
  }
}

/// %20 is a reshape of a repetition, which therefore is written out: its element does not come from a register.
TEST(Loops, ARepetitionThatIsWrittenOutReadsMemory) {
  expect_all_ways_agree(parse_graph(R"(
%0 = input : f32[3,5]
%1 = input : f32[1,1]
%2 = broadcast{shape=[3,5]} %1 : f32[3,5]
%3 = subtract %0 %2 : f32[3,5]
%4 = square %3 : f32[3,5]
%5 = reshape{shape=[15]} %4 : f32[15]
%6 = sum{axis=-1} %5 : f32[1]
%7 = reshape{shape=[1,1]} %6 : f32[1,1]
%8 = reshape{shape=[]} %7 : f32[]
%9 = input : f32[]
%10 = divide %8 %9 : f32[]
%11 = input : f32[]
%12 = equal %10 %11 : bool[]
%13 = input : f32[]
%14 = input : f32[]
%15 = where %12 %13 %14 : f32[]
%16 = cotangent_over %15 %9 : f32[]
%17 = reshape{shape=[1,1]} %16 : f32[1,1]
%18 = reshape{shape=[1]} %17 : f32[1]
%19 = broadcast{shape=[15]} %18 : f32[15]
%20 = reshape{shape=[3,5]} %19 : f32[3,5]
%21 = add %3 %3 : f32[3,5]
%22 = multiply %20 %21 : f32[3,5]
%23 = negative %22 : f32[3,5]
%24 = reshape{shape=[15]} %23 : f32[15]
return %24
)"));
}

/// How many random graphs of each kind; more in a long run. Another first seed gives others.
unsigned random_graphs() {
  const char* asked = std::getenv("GRADUS_RANDOM_GRAPHS");
  return asked ? static_cast<unsigned>(std::atoi(asked)) : 6;
}
unsigned first_seed() {
  const char* asked = std::getenv("GRADUS_RANDOM_GRAPHS_SEED");
  return asked ? static_cast<unsigned>(std::atoi(asked)) : 1;
}

void expect_random_graphs_agree(const Shape& base, const std::vector<std::vector<std::int64_t>>& symbols = {{}}) {
  const unsigned graphs = base.is_symbolic() ? random_graphs() / 3 : random_graphs();
  for (unsigned seed = first_seed(); seed < first_seed() + graphs; ++seed) {
    SCOPED_TRACE(text("seed ", seed, " over ", brackets(base)));
    const Graph graph = RandomGraph(seed, base).make(12);
    verify(graph);
    try {
      expect_all_ways_agree(graph, symbols, seed);
    } catch (const std::exception& problem) { FAIL() << problem.what() << "\n" << to_text(graph); }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Loops, RandomGraphs) {
  const Shape bases[] = {{64, 10},  {3, 17},    {5, 1000},   {2, 3, 40}, {70, 33}, {40000}, {1, 16},
                         {4, 1, 7}, {2, 40000}, {100, 2, 5}, {3, 0},     {0, 4},   {1},     {}};
  for (const Shape& base : bases) {
    expect_random_graphs_agree(base);
    if (HasFatalFailure()) return;
  }
}

// ---------------------------------------------------------------- in place

/// How many outputs of the fused graph take the memory of an input; and that the result is right all the same.
std::ptrdiff_t in_place(const char* source) {
  Graph graph = parse_graph(source);
  expect_all_ways_agree(graph);
  graph.dying = graph.inputs;
  const auto program = compiled(graph, {.reuse = true});
  return std::ranges::count_if(program->may_overwrite(), [](int input) { return input >= 0; });
}

TEST(Loops, TheLastPhaseWritesOverWhatEarlierPhasesRead) {
  for (const char* n : {"10", "1000", "40000"})
    EXPECT_EQ(in_place(text("%0 = input : f32[3,", n, "]\n%1 = sum{axis=-1} %0 : f32[3,1]\n%2 = broadcast{shape=[3,", n,
                            "]} %1 : f32[3,", n, "]\n%3 = divide %0 %2 : f32[3,", n, "]\nreturn %3\n")
                           .c_str()),
              1);
}

TEST(Loops, AnEarlyPhaseDoesNotWriteOverWhatLaterPhasesRead) {
  for (const char* n : {"10", "1000", "40000"})
    EXPECT_EQ(in_place(text("%0 = input : f32[3,", n, "]\n%1 = negative %0 : f32[3,", n,
                            "]\n%2 = sum{axis=-1} %1 : f32[3,1]\n%3 = broadcast{shape=[3,", n, "]} %2 : f32[3,", n,
                            "]\n%4 = add %0 %3 : f32[3,", n, "]\n%5 = less %4 %0 : bool[3,", n, "]\nreturn %1 %5\n")
                           .c_str()),
              0);
}

TEST(Loops, WhatIsReadElsewhereIsNotWrittenOver) {
  EXPECT_EQ(in_place("%0 = input : f32[8,8]\n%1 = transpose{order=[0,1]} %0 : f32[8,8]\n%2 = add %0 %1 : f32[8,8]\n"
                     "return %2\n"),
            0);
}

// ---------------------------------------------------------------- every instruction of formulas

struct Shifts {
  static constexpr auto name = "test_shifts";
  static constexpr auto takes = Takes::integers;
  auto emit(auto x) const { return record_shifts(x); }
  static scalar::Value record_shifts(scalar::Value x) {
    return shift_left(x, 3) ^ shift_right(x, 2) ^ shift_right_logical(x, 1);
  }
  static scalar::Real record_shifts(scalar::Real x) { return x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Bits {
  static constexpr auto name = "test_bits";
  static constexpr auto takes = Takes::discrete;
  auto emit(auto x, auto y) const { return (x & y) ^ (x | y) ^ (x ^ y); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Rounds {
  static constexpr auto name = "test_rounds";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto y, auto z) const {
    return fma(floor(x), ceil(y), truncate(z)) - round_even(x) / sqrt(abs(y)) + min(x, y) * max(-y, z);
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Wraps {
  static constexpr auto name = "test_wraps";
  static constexpr auto takes = Takes::integers;
  auto emit(auto x, auto y) const { return x / y + abs(x) * y - min(x, y) + max(x, -y) + x / scalar::Literal(7); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Compares {
  static constexpr auto name = "test_compares";
  static constexpr auto takes = Takes::anything;
  static constexpr auto result = boolean;
  auto emit(auto x, auto y) const { return ((x < y) ^ (x <= y)) | (x == y); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Reinterpret {
  static constexpr auto name = "test_reinterpret";
  static constexpr auto takes = Takes::anything;
  DType to = i32;
  DType result(Specs) const { return to; }
  scalar::Value emit(scalar::Value x) const { return bitcast(x, to); }
  scalar::Real emit(scalar::Real x) const { return x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

TEST(Loops, EveryInstructionOfEveryType) {
  for (const unsigned seed : {3u, 5u}) {
    Graph graph;
    const auto add = [&](const AnyOp& op, const std::vector<int>& in) {
      std::vector<Spec> specs;
      for (int i : in) specs.push_back(graph[i].spec);
      graph.outputs.push_back(graph.add({.op = op, .in = in, .spec = op.infer(specs)}));
    };
    for (const DType t : all_dtypes) {
      int x[3];
      for (int& i : x) graph.inputs.push_back(i = graph.add({.spec = {t, {203}}}));
      if (is_integer(t)) add(AnyOp::of(Shifts{}), {x[0]});
      if (is_integer(t)) add(AnyOp::of(Wraps{}), {x[0], x[1]});
      if (!is_floating(t)) add(AnyOp::of(Bits{}), {x[0], x[1]});
      if (is_floating(t)) add(AnyOp::of(Rounds{}), {x[0], x[1], x[2]});
      add(AnyOp::of(Compares{}), {x[0], x[1]});
      for (const DType to : all_dtypes) add(parse_op("cast", text("to=", to)), {x[2]});
      for (const DType to : all_dtypes)
        if (size_of(to) == size_of(t) && t != boolean && to != boolean) add(AnyOp::of(Reinterpret{to}), {x[1]});
    }
    expect_all_ways_agree(graph, {{}}, seed);
    if (HasFatalFailure()) return;
  }
}

// ---------------------------------------------------------------- what a kernel touches

/// The thunks of a graph of one step, and memory for each slot.
struct OneStep {
  explicit OneStep(const char* source) : graph(parse_graph(source)) {
    const std::vector<Step> steps = fuse(graph, true);
    EXPECT_EQ(steps.size(), 1u);
    lowered.slots = graph.size();
    thunks = cpu_backend::lower_loops(graph, steps, cpu_backend::isa(), lowered)[0];
    for (int i = 0; i < graph.size(); ++i) {
      buffers.push_back(random_buffer(graph[i].spec, static_cast<unsigned>(i)));
      slots.push_back(buffers.back()->data());
    }
  }
  void run(const Thunk& thunk, std::int64_t begin, std::int64_t end) {
    ErrorWord error;
    const KernelArguments arguments{slots.data(), nullptr, scratch.data(), thunk.data.get(), &error, 0};
    thunk.run(&arguments, begin, end);
  }
  Graph graph;
  Lowered lowered;
  std::vector<Thunk> thunks;
  std::vector<Ref<Buffer>> buffers;
  std::vector<void*> slots;
  std::vector<std::byte> scratch = std::vector<std::byte>(1 << 20);
};

TEST(Loops, APartWritesNothingOutsideOfItself) {
  OneStep flat("%0 = input : f32[200]\n%1 = negative %0 : f32[200]\n%2 = is_nan %1 : bool[200]\nreturn %1 %2\n");
  ASSERT_EQ(flat.thunks.size(), 1u);
  EXPECT_EQ(flat.thunks[0].extent, 200);
  std::memset(flat.slots[1], 7, 800);
  std::memset(flat.slots[2], 7, 200);
  flat.run(flat.thunks[0], 64, 128);
  for (int i = 0; i < 200; ++i) {
    const bool inside = i >= 64 && i < 128;
    EXPECT_EQ(static_cast<std::uint8_t*>(flat.slots[2])[i], inside ? 0 : 7) << i;
    if (inside) EXPECT_EQ(static_cast<float*>(flat.slots[1])[i], -static_cast<float*>(flat.slots[0])[i]);
    else EXPECT_EQ(static_cast<std::uint32_t*>(flat.slots[1])[i], 0x07070707u) << i;
  }
}

TEST(Loops, RowsWriteNothingOutsideOfThemselves) {
  OneStep rows(
      "%0 = input : f64[5,10]\n%1 = input : f64[10]\n%2 = broadcast{shape=[5,10]} %1 : f64[5,10]\n"
      "%3 = less %0 %2 : bool[5,10]\n%4 = where %3 %0 %2 : f64[5,10]\nreturn %3 %4\n");
  ASSERT_EQ(rows.thunks.size(), 1u);
  EXPECT_EQ(rows.thunks[0].extent, 5);
  std::memset(rows.slots[3], 7, 50);
  std::memset(rows.slots[4], 7, 400);
  rows.run(rows.thunks[0], 1, 3);
  for (int i = 0; i < 50; ++i) {
    const bool inside = i >= 10 && i < 30;
    EXPECT_EQ(static_cast<std::uint8_t*>(rows.slots[3])[i] == 7, !inside) << i;
    EXPECT_EQ(static_cast<std::uint64_t*>(rows.slots[4])[i] == 0x0707070707070707u, !inside) << i;
  }
}

TEST(Loops, StepsOfOneStructureShareTheirCode) {
  const auto code_of = [](const char* second) {
    const Graph graph =
        parse_graph(text("%0 = input : f32[160]\n%1 = exp %0 : f32[160]\n%2 = input : f32[320]\n%3 = ", second,
                         " %2 : f32[320]\nreturn %1 %3\n"));
    Lowered lowered{.slots = graph.size()};
    const auto thunks = cpu_backend::lower_loops(graph, fuse(graph, true), cpu_backend::isa(), lowered);
    return std::pair(thunks[0][0].run, thunks[1][0].run);
  };
  const auto [a, b] = code_of("exp");
  EXPECT_EQ(a, b);
  const auto [c, d] = code_of("negative");
  EXPECT_NE(c, d);
}

TEST(Loops, ThunksTellWhatTheyDo) {
  OneStep step("%0 = input : f32[64,10]\n%1 = relu %0 : f32[64,10]\n%2 = sum{axis=-2} %1 : f32[1,10]\nreturn %1 %2\n");
  ASSERT_EQ(step.thunks.size(), 2u);
  EXPECT_EQ(step.thunks[0].label, "relu+sum");
  EXPECT_EQ(step.thunks[1].label, "relu+sum (combined)");
  EXPECT_EQ(step.thunks[0].extent, 2);  // blocks of 32 rows
  EXPECT_EQ(step.thunks[0].bytes, (640 + 640 + 10) * 4);
  EXPECT_GE(step.thunks[0].flops, 2 * 640);
  EXPECT_EQ(step.thunks[0].shared_slot, 3);
  EXPECT_GE(step.thunks[0].shared_scratch, 2 * 10 * 4);
  EXPECT_GT(step.lowered.code_bytes, 0u);
}

TEST(Loops, ManyThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < 3; ++k)
    threads.emplace_back([k] {
      for (unsigned i = 0; i < 3; ++i) {
        const Graph graph = RandomGraph(100 * k + i, {20, 33}).make(6);
        const auto inputs = random_inputs(graph, {}, i);
        const auto program = compiled(graph);
        expect_same(*program, run(*program, inputs), run(*interpreted(graph), inputs), {}, "several threads");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Loops, RandomGraphsOfUnknownExtents) {
  const std::int64_t s0 = dimension::symbol(0), s1 = dimension::symbol(1);
  const Shape bases[] = {{s0, 10}, {3, s0}, {s0, s1}, {2, s0, 20}, {s0}, {s0, 3, s1}};
  for (const Shape& base : bases) {
    expect_random_graphs_agree(base, {{1, 1}, {64, 10}, {33, 17}, {100, 35}, {0, 3}, {2000, 16}});
    if (HasFatalFailure()) return;
  }
  expect_random_graphs_agree({s0}, {{40000}, {32768}, {70001}});
  if (HasFatalFailure()) return;
  expect_random_graphs_agree({s0, 2, s1}, {{40, 40000}, {1, 70001}});
}

}  // namespace
}  // namespace gradus::loops_test
