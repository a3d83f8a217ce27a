/// Values that follow from constants alone are read while a function is traced; all others are refused.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::known_values_test {
namespace {

using Reads = std::function<double(const Tensor& x)>;
struct Row {
  const char* name;
  Reads reads;
  double value;
};
const Tensor captured = constant({2.0f, 3.0f});

/// Each of them reads a value in the trace of a function of x, f32[4, 3].
const std::vector<Row> rows{
    {"a constant", [](const Tensor&) { return constant(3.0f).item(); }, 3},
    {"a sum of constants", [](const Tensor&) { return (constant(3.0f) + constant(4.0f)).item(); }, 7},
    {"a sum over a range", [](const Tensor&) { return cast(reduce_sum(range(5)), f64).item(); }, 10},
    {"zeros of the shape of the argument", [](const Tensor& x) { return reduce_sum(ones_like(x)).item(); }, 12},
    {"a captured tensor, computed with", [](const Tensor&) { return reduce_prod(captured * 2).item(); }, 24},
    {"one of several results", [](const Tensor&) { return top_k(constant({5.0f, 9.0f, 7.0f}), 2).values[1].item(); },
     7},
    {"elements", [](const Tensor&) { return double((constant({1, 2}) * 3).to_vector<int>()[1]); }, 6},
    {"a branch", [](const Tensor&) { return constant(1.0f) + 1 > 1.5 ? 1.0 : 0.0; }, 1},
    {"a length",
     [](const Tensor&) { return double(boolean_mask(constant({5, 6, 7}), constant({1, 0, 2}) * 2 > 0).shape()[0]); },
     2},
    {"twice",
     [](const Tensor&) {
       const Tensor sum = constant(1.0f) + 1;
       return sum.item() + (sum * 2).item();
     },
     6},
};

TEST(KnownValues, AreReadWhileAFunctionIsTraced) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    double seen = 0;
    int traced = 0;
    const auto f = function([&](const Tensor& x) {
      ++traced;
      seen = row.reads(x);
      return x * seen;
    });
    EXPECT_EQ(f(ones({4, 3})).to_vector<float>()[0], row.value);
    EXPECT_EQ(f(ones({4, 3}) * 2).to_vector<float>()[0], 2 * row.value);
    EXPECT_EQ(seen, row.value);
    EXPECT_EQ(traced, 1);
    EXPECT_EQ(row.reads(ones({4, 3})), row.value);  // as without a trace
  }
}

TEST(KnownValues, AreReadWithinBodiesToo) {
  const auto f = function([](const Tensor& x) {
    return cond(reduce_sum(x) > 0, [&] { return x * (constant(2.0f) + 1).item(); }, [&] { return x; });
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>()[0], 3);
  const Tensor rows_of =
      vectorized_map([](const Tensor& row) { return row * (constant(2.0f) * 2).item(); }, ones({2, 2}));
  EXPECT_EQ(rows_of.to_vector<float>()[3], 4);
}

TEST(KnownValues, TheProgramIsTheOneWithoutReading) {
  const auto graph_of = [](bool reads) {
    const auto f = function([reads](const Tensor& x) {
      const Tensor scale = exp(constant(0.5f)) + 1;
      if (reads) { EXPECT_GT(scale.item(), 2); }
      return x * scale;
    });
    const Tensor y = f(linspace(0, 1, 7));
    return std::pair(f.stablehlo({{f32, {7}}}), y.to_vector<float>());
  };
  EXPECT_EQ(graph_of(false), graph_of(true));
}

TEST(KnownValues, AllOthersAreRefused) {
  Variable v(constant(1.0f));
  const std::vector<std::pair<const char*, Reads>> unknown{
      {"an argument", [](const Tensor& x) { return x[0][0].item(); }},
      {"a sum with a constant", [](const Tensor& x) { return (reduce_sum(x) + constant(1.0f)).item(); }},
      {"a Variable", [&](const Tensor&) { return v.value().item(); }},
      {"a Variable, computed with", [&](const Tensor&) { return (v + constant(1.0f)).item(); }},
      {"random numbers", [](const Tensor&) { return random::normal({}).item(); }},
  };
  for (const auto& [name, reads] : unknown) {
    SCOPED_TRACE(name);
    const auto f = function([&](const Tensor& x) { return x * reads(x); });
    expect_says(error_of<InvalidArgument>([&] { f(ones({4, 3})); }), "is not known while its function is traced");
  }
}

TEST(KnownValues, SizesThatVaryAreFixedWhereTheyAreRead) {
  const auto f = function([](const Tensor& x) { return x * reduce_sum(ones_like(x)).item(); });
  for (const std::int64_t n : {2, 3, 5, 7}) EXPECT_EQ(f(ones({n})).to_vector<float>()[0], static_cast<float>(n)) << n;
}

TEST(KnownValues, AnErrorOfTheDataIsThrownWhereItIsRead) {
  const auto f = function([](const Tensor& x) { return x * gather(constant({1.0f, 2.0f}), constant(5)).item(); });
  EXPECT_THROW(f(ones({2})), OutOfRange);
}

}  // namespace
}  // namespace gradus::known_values_test
