/// What is computed of a product alone runs over its pieces: the same bits as in steps of their own, for any number of
/// threads, all sizes, open ones too, in the memory of what dies; and it takes no memory.
#include "gradus/compiler/passes.h"
#include "tests/backend_cpu/compiled.h"

namespace gradus::epilogues_test {
namespace {

using namespace testing_loops;

const std::string product = " = matmul{transpose_a=true; transpose_b=false} ";

/// How many steps of kind product there are, as the compiler would have it.
int joined(Graph graph) {
  const std::vector<Step> steps =
      join_epilogues(graph, order_steps(graph, fuse(graph, true)), {.least_joined_bytes = 0});
  return static_cast<int>(std::ranges::count(steps, Step::Kind::product, &Step::kind));
}

void expect_same_bits(const Graph& graph, const std::vector<std::int64_t>& symbols = {}) {
  for (unsigned seed : {4u, 3u}) {  // 3: with infinities and NaN
    const auto inputs = random_inputs(graph, symbols, seed);
    const auto plain = cpu_backend::compile(graph, {.disable = {"epilogues"}});
    const auto expected = run_in_place(*plain, inputs, symbols);
    for (int threads : {1, 3}) {
      const Threads scope(threads);
      const auto program = cpu_backend::compile(graph, {.target = {.least_joined_bytes = 0}});
      EXPECT_LE(program->report(symbols).temporary_bytes, plain->report(symbols).temporary_bytes);
      expect_same(*program, run(*program, inputs, symbols), expected, symbols, text(threads, " threads"));
      expect_same(*program, run_in_place(*program, inputs, symbols), expected, symbols,
                  text(threads, " threads, in place"));
    }
  }
}

struct Case {
  std::int64_t rows, m, n;  // of a batch, and of weights
  DType dtype = f32;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dtype << " [" << c.rows << "," << c.m << "] [" << c.rows << "," << c.n << "]";
}

/// Weights and a momentum that are updated by the gradient of a product.
Graph update(const Case& c, const std::string& rows) {
  const bool narrow = c.dtype == bf16;
  const std::string t = text(c.dtype), weights = text("[", c.m, ",", c.n, "]"), wide = (narrow ? "f32" : t) + weights;
  std::string lines = "%0 = input : " + t + "[" + rows + "," + std::to_string(c.m) + "]\n%1 = input : " + t + "[" +
                      rows + "," + std::to_string(c.n) + "]\n%2 = input : " + wide + "\n%3 = input : " + wide + "\n%4" +
                      product + "%0 %1 : " + t + weights + "\n";
  lines += narrow ? "%5 = cast{to=f32} %4 : " + wide + "\n" : "%5 = add %4 %4 : " + wide + "\n";
  lines += "%6 = multiply %3 %3 : " + wide + "\n%7 = add %6 %5 : " + wide + "\n%8 = subtract %2 %7 : " + wide +
           "\nreturn %8 %7\n";
  Graph graph = parse_graph(lines);
  graph.dying = {graph.inputs[2], graph.inputs[3]};
  return graph;
}

class Epilogues : public testing::TestWithParam<Case> {};

TEST_P(Epilogues, HaveTheBitsOfStepsOfTheirOwn) {
  const Case& c = GetParam();
  const Graph known = update(c, std::to_string(c.rows)), open = update(c, "s0");
  EXPECT_EQ(joined(known), c.m * c.n >= 1024 && (c.rows <= 1024 || c.dtype == bf16) ? 1 : 0);
  expect_same_bits(known);
  expect_same_bits(open, {c.rows});
  expect_same_bits(open, {0});
  expect_same_bits(open, {1100});  // sums that pause in memory
}

INSTANTIATE_TEST_SUITE_P(Sizes, Epilogues,
                         testing::Values(Case{16, 784, 128}, Case{1, 33, 65}, Case{7, 1024, 1}, Case{5, 1, 3000},
                                         Case{40, 301, 257}, Case{1100, 130, 70}, Case{3, 20, 9000}, Case{0, 40, 50},
                                         Case{20, 0, 30}, Case{6, 5, 7}, Case{2500, 61, 33}, Case{33, 250, 300, f64},
                                         Case{1200, 40, 41, f64}, Case{30, 301, 77, bf16}, Case{31, 64, 130, bf16},
                                         Case{9, 130, 66, i32}, Case{12, 60, 50, i64}));

/// What a layer makes of its product: a bias for each column, an activation with its mask, a scale for each row, what
/// is left over from before, which is written over.
Graph layer(const Case& c, const std::string& rows) {
  const std::string t = text(c.dtype), out = t + "[" + rows + "," + std::to_string(c.n) + "]";
  Graph graph = parse_graph("%0 = input : " + t + "[" + rows + "," + std::to_string(c.m) + "]\n%1 = input : " + t +
                            text("[", c.m, ",", c.n, "]\n%2 = input : ", t, "[", c.n, "]\n%3 = input : ", t, "[", rows,
                                 ",1]\n%4 = input : ") +
                            out + "\n%5 = matmul{transpose_a=false; transpose_b=false} %0 %1 : " + out +
                            "\n%6 = broadcast{shape=[" + rows + "," + std::to_string(c.n) + "]} %2 : " + out +
                            "\n%7 = add %5 %6 : " + out + "\n%8 = relu %7 : " + out + "\n%9 = broadcast{shape=[" +
                            rows + "," + std::to_string(c.n) + "]} %3 : " + out + "\n%10 = multiply %8 %9 : " + out +
                            "\n%11 = add %4 %10 : " + out + "\n%12 = less %7 %9 : bool[" + rows + "," +
                            std::to_string(c.n) + "]\nreturn %11 %12\n");
  graph.dying = {graph.inputs[4]};
  return graph;
}

class Layers : public testing::TestWithParam<Case> {};

TEST_P(Layers, HaveTheBitsOfStepsOfTheirOwn) {
  const Case& c = GetParam();
  const Graph known = layer(c, std::to_string(c.rows));
  EXPECT_EQ(joined(known), c.rows * c.n >= 1024 && (c.m <= 1024 || c.dtype == bf16) ? 1 : 0);
  expect_same_bits(known);
  const Graph open = layer(c, "s0");
  for (const std::int64_t rows : {c.rows, std::int64_t{0}, std::int64_t{1}, std::int64_t{700}})
    expect_same_bits(open, {rows});
}

INSTANTIATE_TEST_SUITE_P(Sizes, Layers,
                         testing::Values(Case{64, 784, 128}, Case{2048, 33, 10}, Case{300, 64, 16}, Case{500, 40, 17},
                                         Case{31, 256, 1024}, Case{1500, 20, 3}, Case{1200, 7, 1}, Case{1, 30, 40000},
                                         Case{40, 0, 50}, Case{70, 1100, 40}, Case{90, 100, 77, f64},
                                         Case{65, 120, 130, bf16}, Case{40, 2048, 64, bf16}));

/// Of products of less than a row of what follows, and of several.
TEST(Epilogues, RowsOfFormulasNeedNotBeThoseOfTheProduct) {
  for (const std::string rows : {"[25600,3]", "[200,384]", "[400,192]", "[100,768]"}) {
    const std::string columns = rows.substr(rows.find(',') + 1, rows.size() - rows.find(',') - 2),
                      out = " : f32" + rows;
    const Graph graph = parse_graph(
        "%0 = input : f32[200,48]\n%1 = input : f32[48,384]\n%2 = input : f32[" + columns +
        "]\n%3 = matmul{transpose_a=false; transpose_b=false} %0 %1 : f32[200,384]\n%4 = reshape{shape=" + rows +
        "} %3" + out + "\n%5 = broadcast{shape=" + rows + "} %2" + out + "\n%6 = add %4 %5" + out + "\n%7 = tanh %6" +
        out + "\nreturn %7\n");
    EXPECT_EQ(joined(graph), 1) << rows;
    expect_same_bits(graph);
  }
}

TEST(Epilogues, LeaveProductsThatCachesHoldAlone) {
  const Graph graph = layer({64, 300, 64}, "64");
  const std::vector<Step> steps = order_steps(graph, fuse(graph, true));
  EXPECT_EQ(join_epilogues(graph, steps, {.least_joined_bytes = 64 * 64 * 4}).size() + 1, steps.size());
  EXPECT_EQ(join_epilogues(graph, steps, {.least_joined_bytes = 64 * 64 * 4 + 1}).size(), steps.size());
  EXPECT_EQ(joined(update({16, 784, 128}, "16")), 1) << "gradients of weights are joined at any size";
}

/// As a program of default options has it.
TEST(Epilogues, JoinWhatCachesDoNotHold) {
  for (const auto& [rows, kernels] : {std::pair(65535, 2), std::pair(65536, 1)})
    EXPECT_EQ(cpu_backend::compile(layer({rows, 20, 64}, std::to_string(rows)))->report().kernels.size(), kernels)
        << rows;
}

/// Weights that the program updates, and a product that would go in turns with them; or one with too many rows for it.
TEST(Epilogues, AreNotJoinedInTurns) {
  for (const auto& [rows, joins] : {std::pair(64, 0), std::pair(600, 1)}) {
    Graph graph = layer({rows, 784, 128}, std::to_string(rows));
    graph.dying = {graph.inputs[1]};
    EXPECT_EQ(joined(graph), joins) << rows;
    expect_same_bits(graph);
  }
}

/// Sums of products, each of a micro-batch, and what is made of them.
Graph sum_of_products(int count, const std::string& m, const std::string& n) {
  const std::string weights = "f32[" + m + "," + n + "]\n";
  std::string lines = "%0 = input : " + weights;
  int next = 1;
  const auto add = [&](const std::string& what, const std::string& spec) {
    lines += "%" + std::to_string(next) + what + spec;
    return "%" + std::to_string(next++);
  };
  std::string sum;
  for (int i = 0; i < count; ++i) {
    const std::string x = add(" = input : ", "f32[24," + m + "]\n"), y = add(" = input : ", "f32[24," + n + "]\n");
    const std::string each = add(product + x + " " + y + " : ", weights);
    sum = sum.empty() ? each : add(" = add " + sum + " " + each + " : ", weights);
  }
  const std::string scaled = add(" = multiply " + sum + " " + sum + " : ", weights);
  lines += "return " + add(" = subtract %0 " + scaled + " : ", weights) + "\n";
  Graph graph = parse_graph(lines);
  graph.dying = {graph.inputs[0]};
  return graph;
}

TEST(Epilogues, AddUpProductsInOnePlace) {
  for (int count : {2, 3, 8}) {
    const Graph graph = sum_of_products(count, "150", "90");
    EXPECT_EQ(joined(graph), count - 1);
    EXPECT_LE(cpu_backend::compile(graph)->report().temporary_bytes, 2 * 150 * 90 * 4) << count << " products";
    expect_same_bits(graph);
  }
}

TEST(Epilogues, AreNotJoinedWhereAProductIsWantedOtherwise) {
  const std::string head = "%0 = input : f32[40,50]\n%1 = input : f32[40,60]\n%2 = input : f32[50,60]\n%3" + product +
                           "%0 %1 : f32[50,60]\n%4 = subtract %2 %3 : f32[50,60]\n";
  const auto joins = [&](const std::string& rest) { return joined(parse_graph(head + rest)); };
  EXPECT_EQ(joins("return %4\n"), 1);
  EXPECT_EQ(joins("return %4 %3\n"), 0) << "the graph yields it";
  EXPECT_EQ(joins("%5 = sum{axis=-1} %3 : f32[50,1]\nreturn %4 %5\n"), 0) << "a norm is taken of it";
  EXPECT_EQ(joins("%5 = matmul{transpose_a=false; transpose_b=true} %3 %1 : f32[50,40]\nreturn %4 %5\n"), 0);
  EXPECT_EQ(joins("%5 = transpose{order=[0,1]} %3 : f32[60,50]\n%6 = exp %5 : f32[60,50]\nreturn %4 %6\n"), 0);
  EXPECT_EQ(joins("%5 = sum{axis=-1} %4 : f32[50,1]\nreturn %4 %5\n"), 0) << "rows are reduced";
}

/// What is multiplied may not be written over: other threads still read it.
TEST(Epilogues, LeaveTheFactorsOfTheirProductAlone) {
  Graph graph = parse_graph("%0 = input : f32[64,64]\n%1 = input : f32[64,64]\n%2" + product +
                            "%0 %1 : f32[64,64]\n%3 = subtract %0 %2 : f32[64,64]\nreturn %3\n");
  graph.dying = {graph.inputs[0]};
  EXPECT_EQ(joined(graph), 1);
  EXPECT_EQ(cpu_backend::compile(graph)->may_overwrite()[0], -1);
  expect_same_bits(graph);
}

/// Nothing lives longer for it than the product would have.
TEST(Epilogues, DoNotKeepLargeFactorsForLater) {
  const auto graph = [](const std::string& rows) {
    return parse_graph(
        "%0 = input : f32[" + rows + ",40]\n%1 = input : f32[40,40]\n%2 = exp %0 : f32[" + rows + ",40]\n%3" + product +
        "%2 %2 : f32[40,40]\n%4 = matmul{transpose_a=false; transpose_b=false} "
        "%1 %1 : f32[40,40]\n%5 = matmul{transpose_a=false; transpose_b=false} %4 %4 : f32[40,40]\n"
        "%6 = matmul{transpose_a=false; transpose_b=false} %5 %4 : f32[40,40]\n%7 = softplus %6 : "
        "f32[40,40]\n%8 = matmul{transpose_a=false; transpose_b=false} %7 %7 : f32[40,40]\n%9 = sum{axis=-1} "
        "%8 : f32[40,1]\n%10 = broadcast{shape=[40,40]} %9 : f32[40,40]\n%11 = multiply %10 %3 : "
        "f32[40,40]\nreturn %11\n");
  };
  expect_same_bits(graph("30"));
  expect_same_bits(graph("3000"));
}

/// A kernel of several products is not cut for those that stand in memory anyway.
TEST(Epilogues, CutNothingInVain) {
  const std::string square = " : f32[40,40]\n";
  const Graph graph =
      parse_graph("%0 = input : f32[900,40]\n%1 = input : f32[900,40]\n%2 = input" + square +
                  "%3 = exp %0 : f32[900,40]\n%4 = exp %1 : f32[900,40]\n%5" + product + "%3 %3" + square + "%6" +
                  product + "%4 %4" + square + "%7" + product + "%2 %2" + square + "%8" + product + "%7 %7" + square +
                  "%9 = cumsum{axis=-1; exclusive=false; reverse=false} %8" + square + "%10 = multiply %9 %5" + square +
                  "%11 = subtract %10 %6" + square + "return %11\n");
  const std::vector<Step> steps = order_steps(graph, fuse(graph, true));
  EXPECT_EQ(join_epilogues(graph, steps, {.least_joined_bytes = 0}).size(), steps.size());
  expect_same_bits(graph);
}

}  // namespace
}  // namespace gradus::epilogues_test
