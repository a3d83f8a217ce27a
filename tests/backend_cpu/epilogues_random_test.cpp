/// Random programs of products and what is made of them: the same bits with and without epilogues, whatever else is
/// disabled, for any number of threads and runs at a time, for open sizes, too, and within budgets.
#include <algorithm>
#include <optional>
#include <thread>
#include "gradus/compiler/passes.h"
#include "tests/backend_cpu/compiled.h"
#include "tests/backend_cpu/random_products.h"
#include "tests/instruction_sets.h"

namespace gradus::epilogues_random_test {
namespace {

using namespace testing_loops;
using Disabled = std::vector<std::string>;

/// What is compiled, for which sizes, and how: all of it follows from the seed.
class Trial {
 public:
  explicit Trial(unsigned seed) : seed_(seed), random_(seed * 7919) {
    constexpr DType dtypes[] = {f32, f32, f32, f64, bf16, bf16, i32, i64};
    const DType dtype = dtypes[random_() % std::size(dtypes)];
    const std::int64_t side = one_of(32, 33, 40, 64, 65, 97, 130, 260);
    std::vector<std::int64_t> dimensions{side, side, one_of(1, 16, 40, 33, 1030), side};
    if (is_one_in(3)) {
      dimensions = {dimension::symbol(0), side, one_of(1, 7, 48, 300)};
      if (is_one_in(2)) dimensions.push_back(dimension::symbol(1));
      symbols_ = {{one_of(2, 31, 64, 100), one_of(16, 65)}, {0, 5}, {1, 0}, {1, 1}, {one_of(513, 1100), 3}};
    }
    RandomProducts products(seed, dtype, dimensions);
    const bool of_sums = is_one_in(3);
    const int first = of_sums ? number(2, 6) : number(4, 17);
    graph_ = of_sums ? products.make_sums(first, number(2, 10)) : products.make(first);
    for (auto& values : symbols_) values.resize(static_cast<std::size_t>(graph_.symbols()));
    if (graph_.symbols() == 0) symbols_.resize(1);
  }

  /// Returns whether something was joined.
  bool run() {
    std::optional<cpu_backend::IsaScope> narrow;
    if (is_one_in(4)) narrow.emplace(narrowest_isa());
    const Disabled variants[] = {{},        {},        {},         {"fuse"}, {"reuse"}, {"rederive", "remake"},
                                 {"share"}, {"turns"}, {"balance"}};
    const Disabled disable = variants[random_() % std::size(variants)];
    Disabled of_plain = disable;
    of_plain.insert(of_plain.end(), {"epilogues", "reuse"});
    if (is_one_in(4)) of_plain.push_back("concurrency");
    const auto plain = cpu_backend::compile(graph_, {.disable = of_plain});
    const auto program =
        compiled_with({.disable = disable, .target = {.least_joined_bytes = 0}, .profile = is_one_in(4)}, *plain);
    for (const auto& values : symbols_) {
      compare(*plain, *program, values);
      if (testing::Test::HasFatalFailure()) return false;
    }
    return std::ranges::any_of(program->report(symbols_.front()).kernels,
                               [](const Kernel& kernel) { return kernel.name.starts_with("matmul+"); });
  }

 private:
  template <class... T> std::int64_t one_of(T... values) {
    const std::int64_t all[] = {values...};
    return all[random_() % sizeof...(values)];
  }
  bool is_one_in(unsigned n) { return random_() % n == 0; }
  int number(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<unsigned>(most + 1 - least));
  }

  /// Now and then within a budget, if there is a way to stay within.
  std::shared_ptr<const CpuProgram> compiled_with(CompileOptions options, const CpuProgram& plain) {
    if (is_one_in(3)) {
      const Threads one(1);
      CompileOptions budgeted = options;
      budgeted.symbols = symbols_.front();
      budgeted.max_bytes = plain.report(budgeted.symbols).temporary_bytes * 10 / number(8, 15);
      try {
        auto program = cpu_backend::compile(graph_, budgeted);
        const std::int64_t bytes = program->report(budgeted.symbols).temporary_bytes;
        EXPECT_TRUE(budgeted.max_bytes == 0 || bytes <= budgeted.max_bytes) << "seed " << seed_ << ": " << bytes;
        return program;
      } catch (const ResourceExhausted&) {}
    }
    return cpu_backend::compile(graph_, options);
  }

  void compare(const CpuProgram& plain, const CpuProgram& program, const std::vector<std::int64_t>& symbols) {
    const auto inputs = random_inputs(graph_, symbols, static_cast<unsigned>(number(0, 63)));
    std::vector<Ref<Buffer>> expected;
    {
      const Threads one(1);
      expected = testing_loops::run(plain, inputs, symbols);
    }
    const std::string where = text("seed ", seed_, ", symbols ", brackets(Shape(symbols)), ", ");
    for (const int threads : {1, 2, 3}) {
      const Threads scope(threads);
      const std::string with = text(where, threads, " threads");
      ASSERT_NO_FATAL_FAILURE(
          expect_same(program, testing_loops::run(program, inputs, symbols), expected, symbols, with));
      ASSERT_NO_FATAL_FAILURE(
          expect_same(program, run_in_place(program, inputs, symbols), expected, symbols, with + ", in place"));
    }
    if (!is_one_in(4)) return;
    std::vector<Ref<Buffer>> got[3];
    {
      const Threads scope(2);
      std::vector<std::jthread> callers;
      for (auto& each : got) callers.emplace_back([&] { each = run_in_place(program, inputs, symbols); });
    }
    for (const auto& each : got)
      ASSERT_NO_FATAL_FAILURE(expect_same(program, each, expected, symbols, where + "several at a time"));
  }

  const unsigned seed_;
  std::mt19937 random_;
  std::vector<std::vector<std::int64_t>> symbols_{{}};
  Graph graph_;
};

TEST(RandomEpilogues, HaveTheBitsOfStepsOfTheirOwn) {
  int joined = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    joined += Trial(seed).run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(joined, 15);
}

/// One part for each product that is joined, which is then no step of its own.
TEST(RandomEpilogues, CutKernelsForProductsThatAreJoinedAlone) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Graph graph = RandomProducts(seed, f32, {40, 65, 16, 300, 3000}).make_sums(2 + seed % 5, 3 + seed % 8);
    const std::vector<Step> steps = order_steps(graph, fuse(graph, true)),
                            after = join_epilogues(graph, steps, {.least_joined_bytes = 0});
    const bool joins = std::ranges::count(after, Step::Kind::product, &Step::kind) > 0;
    EXPECT_LT(after.size(), steps.size() + (joins ? 0 : 1)) << to_text(graph);
  }
}

}  // namespace
}  // namespace gradus::epilogues_random_test
