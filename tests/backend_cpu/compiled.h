/// Graphs of loops compiled one way or the other, run on random data and compared bit for bit.
#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <random>
#include "gradus/compiler/passes.h"
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/codegen/lower.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::testing_loops {

struct Way {
  bool merge = true;
  cpu_backend::Isa isa = cpu_backend::isa();
  bool reuse = false;  // outputs take the memory of dying inputs
};

inline std::shared_ptr<const CpuProgram> compiled(const Graph& given, const Way& way = {}) {
  const auto graph = std::make_shared<const Graph>(given);
  Plan plan{.steps = order_steps(*graph, fuse(*graph, way.merge))};
  plan.sharing = way.reuse ? plan_sharing(*graph, plan.steps) : Sharing{std::vector<int>(graph->outputs.size(), -1)};
  Lowered lowered{.slots = graph->size()};
  for (std::vector<Thunk>& thunks : cpu_backend::lower_loops(*graph, plan.steps, way.isa, lowered))
    for (Thunk& thunk : thunks) lowered.thunks.push_back(std::move(thunk));
  return std::make_shared<CpuProgram>(graph, std::move(plan), std::move(lowered));
}

inline std::shared_ptr<const CpuProgram> interpreted(const Graph& graph) {
  return cpu_backend::compile(graph, {.disable = {"fold", "simplify", "eliminate"}, .tier = Tier::interpreted});
}

/// Numbers that are hard on conversions and comparisons.
inline double extreme(unsigned which) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double numbers[] = {infinity,
                                -infinity,
                                std::numeric_limits<double>::quiet_NaN(),
                                1e20,
                                -1e20,
                                1e-42,
                                3e-8,
                                65519.0,
                                65520.0,
                                2147483648.0,
                                -2147483649.0,
                                9223372036854775808.0,
                                255.5,
                                -0.5,
                                256.0,
                                0.5,
                                2.5};
  return numbers[which % std::size(numbers)];
}

template <class T> T random_element(std::mt19937& random, bool extremes) {
  if constexpr (FloatingElement<T>)
    if (extremes && random() % 4 == 0) return static_cast<T>(extreme(static_cast<unsigned>(random())));
  const int special = static_cast<int>(random() % 24);
  if constexpr (std::is_same_v<T, bool>) return random() % 2 == 0;
  else if constexpr (FloatingElement<T>) {
    if (special == 0) return T(0);
    if (special == 1) return -T(0);
    return static_cast<T>(std::normal_distribution<double>(0, 2)(random));
  } else {
    if (special == 0) return std::numeric_limits<T>::min();
    if (special == 1) return std::numeric_limits<T>::max();
    return static_cast<T>(static_cast<int>(random() % 41) - 20);
  }
}

inline Ref<Buffer> random_buffer(const Spec& spec, unsigned seed) {
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  std::mt19937 random(seed);
  with_type(spec.dtype, [&]<class T>(T) {
    T* at = buffer->data<T>();
    for (std::int64_t i = 0; i < spec.shape.size(); ++i) at[i] = random_element<T>(random, seed % 4 == 3);
  });
  return buffer;
}

inline std::vector<Ref<Buffer>> random_inputs(const Graph& graph, std::span<const std::int64_t> symbols,
                                              unsigned seed) {
  std::vector<Ref<Buffer>> inputs;
  for (int input : graph.inputs) {
    const Spec& spec = graph[input].spec;
    inputs.push_back(random_buffer({spec.dtype, spec.shape.evaluated(symbols)}, seed++));
  }
  return inputs;
}

inline std::vector<Ref<Buffer>> run(const CpuProgram& program, const std::vector<Ref<Buffer>>& inputs,
                                    std::span<const std::int64_t> symbols = {}) {
  std::vector<Ref<Buffer>> outputs(program.graph().outputs.size());
  program.run(inputs, outputs, {.symbols = symbols});
  return outputs;
}

/// Whether two elements have the same bits, or are both NaN: which NaN is nobody's contract.
template <class T> bool same(T a, T b) {
  if constexpr (FloatingElement<T>)
    if (a != a && b != b) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The first element in which they differ, told; empty if none.
inline std::string difference(const Spec& spec, const Ref<Buffer>& got, const Ref<Buffer>& expected) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::string {
    const T *a = got->data<T>(), *b = expected->data<T>();
    for (std::int64_t i = 0; i < spec.shape.size(); ++i)
      if (!same(a[i], b[i]))
        return text("element ", i, " of ", spec, ": got ", static_cast<double>(a[i]), ", expected ",
                    static_cast<double>(b[i]));
    return {};
  });
}

inline void expect_same(const CpuProgram& program, const std::vector<Ref<Buffer>>& got,
                        const std::vector<Ref<Buffer>>& expected, std::span<const std::int64_t> symbols,
                        const std::string& where) {
  const Graph& graph = program.graph();
  for (std::size_t k = 0; k < got.size(); ++k) {
    const Spec& spec = graph[graph.outputs[k]].spec;
    const std::string told = difference({spec.dtype, spec.shape.evaluated(symbols)}, got[k], expected[k]);
    ASSERT_EQ(told, "") << "output " << k << ", " << where << "\n" << to_text(graph);
  }
}

inline Ref<Buffer> copy_of(const Ref<Buffer>& buffer) {
  Ref<Buffer> copy = Buffer::allocate(buffer->bytes());
  std::memcpy(copy->data(), buffer->data(), static_cast<std::size_t>(buffer->bytes()));
  return copy;
}

/// Runs with the outputs in the memory of the inputs that they may overwrite.
inline std::vector<Ref<Buffer>> run_in_place(const CpuProgram& program, std::vector<Ref<Buffer>> inputs,
                                             std::span<const std::int64_t> symbols) {
  for (Ref<Buffer>& input : inputs) input = copy_of(input);
  std::vector<Ref<Buffer>> outputs(program.graph().outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const int input = program.may_overwrite()[k]; input >= 0) outputs[k] = inputs[static_cast<std::size_t>(input)];
  program.run(inputs, outputs, {.symbols = symbols});
  return outputs;
}

/// Fused and unfused, for both instruction sets, among three threads, and in place, against the interpreter, for each
/// of these values of the symbols.
inline void expect_all_ways_agree(Graph graph, const std::vector<std::vector<std::int64_t>>& symbols = {{}},
                                  unsigned seed = 1) {
  graph.dying.clear();
  std::vector<std::vector<Ref<Buffer>>> inputs, expected;
  const auto reference = interpreted(graph);
  for (const auto& values : symbols) {
    inputs.push_back(random_inputs(graph, values, seed));
    expected.push_back(run(*reference, inputs.back(), values));
  }
  const auto compare = [&](const Way& way, int threads) {
    const Threads scope(threads);
    const auto program = compiled(graph, way);
    for (std::size_t k = 0; k < symbols.size(); ++k) {
      const auto got = way.reuse ? run_in_place(*program, inputs[k], symbols[k]) : run(*program, inputs[k], symbols[k]);
      expect_same(*program, got, expected[k], symbols[k],
                  text(way.merge ? "fused" : "unfused", way.reuse ? " in place" : "", ", ", cpu_backend::name(way.isa),
                       ", ", threads, " threads, symbols ", brackets(Shape(symbols[k]))));
      if (testing::Test::HasFatalFailure()) return;
    }
  };
  for (const cpu_backend::Isa isa : isas_here())
    for (const bool merge : {true, false}) {
      compare({.merge = merge, .isa = isa}, 1);
      if (testing::Test::HasFatalFailure()) return;
    }
  graph.dying = graph.inputs;
  compare({.isa = *cpu_backend::widest_isa(), .reuse = true}, 3);
}

}  // namespace gradus::testing_loops
