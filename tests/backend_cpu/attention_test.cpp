/// Attention in blocks has the bits of the products around a softmax for which it stands: of every shape and mask, on
/// any number of threads and each instruction set, for sizes known and open. With AMX it has bits of its own for bf16,
/// the same on any number of threads, compiled and interpreted.
#include <gtest/gtest.h>
#include "gradus/backend/cpu/kernels/attention_rows.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/attention_ops.h"
#include "tests/backend_cpu/amx_emulator.h"
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::testing_loops::attention_test {
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

/// Without the last one, which the gradient has not.
std::string attributes_of(const Case& c) {
  return text("{scale=", c.scale, "; causal=", c.causal ? "true" : "false",
              "; masked=", c.mask.empty() ? "false" : "true");
}

/// The result alone, of keys and values whose heads stand before time: such operands, or transposes of them.
Graph heads_first_graph_of(const Case& c, bool transposes) {
  const auto of = [&](std::int64_t a, std::int64_t b, std::int64_t width) {
    return text(c.dtype, "[", c.batch, ",", a, ",", b, ",", width, "]");
  };
  const std::string first =
      text("%0 = input : ", of(c.queries, c.heads, c.width), "\n%1 = input : ", of(c.key_heads, c.keys, c.width),
           "\n%2 = input : ", of(c.key_heads, c.keys, c.value_width),
           "\n%3 = input : ", c.mask.empty() ? "f32[]" : c.mask, "\n");
  const std::string turned =
      text("%4 = transpose{order=[3,1,2,0]} %1 : ", of(c.keys, c.key_heads, c.width),
           "\n%5 = transpose{order=[3,1,2,0]} %2 : ", of(c.keys, c.key_heads, c.value_width), "\n");
  const std::string mask = c.mask.empty() ? "" : " %3", y = of(c.queries, c.heads, c.value_width);
  if (!transposes)
    return parse_graph(text(first, "%4 = attention", attributes_of(c), "; heads_first=true} %0 %1 %2", mask, " : ", y,
                            "\nreturn %4\n"));
  return parse_graph(text(first, turned, "%6 = attention", attributes_of(c), "; heads_first=false} %0 %4 %5", mask,
                          " : ", y, "\nreturn %6\n"));
}

/// The result and the gradients.
Graph graph_of(const Case& c, bool open = false) {
  const std::string batch = open ? "s0" : std::to_string(c.batch), time = open ? "s1" : std::to_string(c.queries);
  const auto of = [&](const std::string& length, std::int64_t heads, std::int64_t width) {
    return text(c.dtype, "[", batch, ",", length, ",", heads, ",", width, "]");
  };
  const std::string keys = open ? time : std::to_string(c.keys);
  const std::string mask = c.mask.empty() ? "" : " %4", y = of(time, c.heads, c.value_width);
  const std::int64_t of_query = c.heads * c.width, of_key = c.key_heads * (c.width + c.value_width);
  const std::string all = open ? text(of_query + of_key, "*s1") : text(c.queries * of_query + c.keys * of_key);
  return parse_graph(
      text("%0 = input : ", of(time, c.heads, c.width), "\n%1 = input : ", of(keys, c.key_heads, c.width),
           "\n%2 = input : ", of(keys, c.key_heads, c.value_width), "\n%3 = input : ", y,
           "\n%4 = input : ", c.mask.empty() ? "f32[]" : c.mask, "\n%5 = attention", attributes_of(c),
           "; heads_first=false} %0 %1 %2", mask, " : ", y, "\n%6 = attention_gradient", attributes_of(c),
           "} %0 %1 %2 %3", mask, " : ", c.dtype, "[", batch, ",", all, "]\nreturn %5 %6\n"));
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

/// Of two results that may round differently: the root mean square of what lies between them is small beside theirs.
void expect_near(const CpuProgram& program, const std::vector<Ref<Buffer>>& got,
                 const std::vector<Ref<Buffer>>& expected, std::span<const std::int64_t> symbols) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const Spec& spec = program.graph()[program.graph().outputs[k]].spec;
    with_type(spec.dtype, [&]<class T>(T) {
      const std::int64_t n = spec.shape.evaluated(symbols).size();
      double between = 0, all = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double a = static_cast<double>(got[k]->data<T>()[i]), b = static_cast<double>(expected[k]->data<T>()[i]);
        between += (a - b) * (a - b), all += b * b;
      }
      EXPECT_LE(std::sqrt(between), 0x1p-7 * std::sqrt(all)) << "output " << k << ", " << spec;
    });
  }
}

/// How products of bf16 are summed. By AMX the order is another one than that of what attention stands for.
enum class Products { in_chains, by_amx };

void expect_blocks_agree(const Graph& graph, std::span<const std::int64_t> symbols, Products how) {
  const auto inputs = finite_inputs(graph, symbols);
  const auto composed = cpu_backend::compile(graph, {.disable = {"attention"}, .tier = Tier::interpreted});
  for (const Value& v : composed->graph().values) ASSERT_FALSE(v.op && v.op->name.starts_with("attention"));
  const auto of_composed = run(*composed, inputs, symbols);
  const auto expect = [&](const std::vector<Ref<Buffer>>& expected, const CompileOptions& options, int threads,
                          const char* where) {
    const Threads scope(threads);
    const auto program = cpu_backend::compile(graph, options);
    expect_same(*program, run(*program, inputs, symbols), expected, symbols, where);
  };
  expect(of_composed, {.disable = {"attention"}}, 2, "composed");
  auto expected = of_composed;
  if (how == Products::by_amx) {
    const Threads scope(1);
    expected = run(*cpu_backend::compile(graph), inputs, symbols);
    expect_near(*composed, expected, of_composed, symbols);
  }
  expect(expected, {}, 1, "in blocks");
  expect(expected, {}, 3, "in blocks, 3 threads");
  expect(expected, {.tier = Tier::interpreted}, 1, "in blocks, interpreted");
  const cpu_backend::IsaScope narrow(narrowest_isa());
  expect(of_composed, {}, 2, "in blocks, narrow vectors");
}

void expect_blocks_agree(const Graph& graph, std::span<const std::int64_t> symbols = {}) {
  {
    const cpu_backend::IsaScope without_amx(cpu_backend::isa());
    expect_blocks_agree(graph, symbols, Products::in_chains);
  }
  if (graph[graph.inputs[0]].spec.dtype != bf16 || !can_run_amx()) return;
  const cpu_backend::IsaScope with_amx(cpu_backend::Isa::avx512, true);
  expect_blocks_agree(graph, symbols, Products::by_amx);
}

const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 7, 5, 3, 3, 4, 6},
    {1, 64, 64, 2, 2, 32, 32, true},
    {1, 65, 65, 1, 1, 8, 16, true},
    {2, 130, 130, 4, 2, 16, 16, true},
    {1, 33, 40, 2, 1, 8, 8, true},   // one query in the second half of a block
    {2, 97, 40, 2, 2, 8, 24, true},  // keys end within the first half
    {1, 96, 96, 1, 1, 12, 8, true, "bool[1,1,96,96]"},
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
    {1, 33, 41, 2, 1, 8, 8, true, {}, bf16},
    {2, 97, 39, 2, 2, 7, 24, true, {}, bf16},
    {1, 96, 96, 1, 1, 12, 8, true, "bool[1,1,96,96]", bf16},
    {2, 97, 97, 2, 1, 8, 8, true, {}, f64},
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
    // Sums along more keys than a run of 512, and than a block of 32,768.
    {1, 40, 513, 1, 1, 4, 4},
    {1, 1100, 1100, 1, 1, 4, 4, true},
    {1, 3, 33000, 1, 1, 2, 2},
    {1, 3, 1500, 1, 1, 4, 4, false, {}, f64},
    {1, 40, 1025, 1, 1, 4, 4, false, "bool[1,1,40,1025]", bf16},
    {1, 2, 33000, 1, 1, 2, 2, false, {}, bf16},
    // Few queries, which go one by one.
    {2, 1, 700, 4, 2, 64, 64, false, "bool[2,1,1,700]"},
    {1, 4, 70, 2, 1, 9, 7, true},
    {2, 3, 1030, 2, 2, 16, 24, true, "bool[1,1,3,1]"},
    {1, 2, 40, 2, 2, 8, 8, false, "f32[1,2,2,40]"},
    {2, 1, 300, 2, 1, 8, 40, false, "bool[2,1,1,300]", f64},
    {1, 1, 33000, 2, 2, 3, 2, true, {}, f64},
};

TEST(AttentionOfFewQueries, ReadsHeadsFirstInPlace) {
  for (Case c : cases) {
    const bool in_place = c.queries <= BlockedAttention::few_queries && c.dtype != bf16 && c.keys > 1;
    const Graph graph = heads_first_graph_of(c, true);
    expect_blocks_agree(graph);
    expect_blocks_agree(heads_first_graph_of(c, false));
    const auto program = cpu_backend::compile(graph);
    for (const Value& v : program->graph().values) {
      const auto* attention = v.op ? v.op.as<BlockedAttention>() : nullptr;
      EXPECT_TRUE(!attention || attention->heads_first == in_place) << c;
    }
  }
}

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
  const auto program = cpu_backend::compile(graph);
  EXPECT_EQ(program->report().temporary_bytes, 0);
  EXPECT_GE(cpu_backend::compile(graph, {.disable = {"attention"}})->report().temporary_bytes, 2 * 4 * 512 * 512 * 4);
}

/// Every table of row functions that this processor can run has the same bits; a NaN may hold anything.
TEST(AttentionRows, AreTheSameByEveryInstructionSet) {
  using namespace library::attention;
#if defined(__x86_64__)
  std::vector<const RowFunctions*> tables{&rows_by_avx2};
  if (cpu_backend::widest_isa() == cpu_backend::Isa::avx512) tables.push_back(&rows_by_avx512);
  if (cpu_backend::has_pair_products()) tables.push_back(&rows_by_avx512_bf16);
#else
  const std::vector<const RowFunctions*> tables{&rows_by_neon};
#endif
  constexpr std::int64_t keys = 75, size = keys * block_queries;
  struct alignas(64) Rows {
    float weights[size], gradients[size];
    std::uint16_t rounded[size];
  };
  const KernelFloats flush;
  for (const bool extremes : {false, true})
    for (const std::int64_t diagonal : {std::int64_t{0}, std::int64_t{20}, keys}) {
      std::vector<std::unique_ptr<Rows>> results;
      for (const RowFunctions* table : tables) {
        Rows& rows = *results.emplace_back(std::make_unique<Rows>());
        std::mt19937 random(5);
        for (float& x : rows.weights) x = random_element<float>(random, extremes);
        for (float& x : rows.gradients) x = random_element<float>(random, extremes);
        for (std::int64_t j = 0; j < keys; ++j)
          for (std::int64_t q = 0; q < std::min(j - diagonal, block_queries); ++q)
            rows.weights[j * block_queries + q] = -std::numeric_limits<float>::infinity(),
                                             rows.gradients[j * block_queries + q] = 0;
        table->soften_narrow(rows.weights, keys, diagonal, 0.25f, false);
        table->round_row(rows.weights, size - 3, rows.rounded);
        table->differentiate_narrow(rows.weights, rows.gradients, keys, diagonal, 0.25f);
      }
      for (const auto& rows : results) {
        // Rows of bf16 stand where those of floats began.
        const auto* weights = reinterpret_cast<const bfloat16*>(rows->weights);
        const auto* first = reinterpret_cast<const bfloat16*>(results[0]->weights);
        const auto* gradients = reinterpret_cast<const bfloat16*>(rows->gradients);
        const auto* first_gradients = reinterpret_cast<const bfloat16*>(results[0]->gradients);
        for (std::int64_t i = 0; i < size; ++i) {
          if (i / block_queries > diagonal + i % block_queries) continue;  // 0, or NaN like the rest of a row
          ASSERT_TRUE(same(weights[i], first[i])) << i;
          ASSERT_TRUE(same(gradients[i], first_gradients[i])) << i;
          ASSERT_TRUE(same(bfloat16::from_bits(rows->rounded[i]), bfloat16::from_bits(results[0]->rounded[i]))) << i;
        }
      }
    }
}

}  // namespace
}  // namespace gradus::testing_loops::attention_test
