/// Every check that follows from an op row: values against references, gradients of first and second order against
/// differences, the same bits interpreted and compiled, special values, kinks, linearity in the cotangent, mistakes.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <set>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/traced_function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/ops/oracle.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::rows_test {
namespace {

/// Values and gradients of several cases, as one list.
struct Batch {
  const Row& row;
  std::vector<Case> cases;
  std::vector<Tensors> seeds;

  void append(Batch further) {
    std::ranges::move(further.cases, std::back_inserter(cases));
    std::ranges::move(further.seeds, std::back_inserter(seeds));
  }
  Tensors inputs() const {
    Tensors all;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      all.insert(all.end(), cases[k].inputs.begin(), cases[k].inputs.end());
      all.insert(all.end(), seeds[k].begin(), seeds[k].end());
    }
    return all;
  }
  Tensors apply(In in) const {
    const RecordingScope keep;  // a queue that is full is computed in between
    Tensors results;
    std::size_t next = 0;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      const In operands = in.subspan(next, cases[k].inputs.size());
      next += operands.size();
      const Tensor y = row.apply(operands);
      results.push_back(y);
      if (seeds[k].empty()) continue;
      for (const Tensor& gradient : vjp(y, operands, in[next]))
        if (gradient.defined()) results.push_back(gradient);
      ++next;
    }
    return results;
  }
};

class OpRow : public RowTest {
 protected:
  Batch make_batch(const std::vector<std::vector<Shape>>& shapes, const std::vector<DType>& dtypes) {
    Batch batch{row(), {}, {}};
    for (DType t : dtypes)
      for (const auto& each : shapes) {
        batch.cases.push_back(make_case(each, t));
        const Tensor y = row().apply(batch.cases.back().inputs);
        batch.seeds.push_back(row().differentiable && is_floating(t) ? Tensors{noise(y)} : Tensors{});
      }
    return batch;
  }
};

std::vector<DType> all_of(const Row& row) {
  std::vector<DType> all = row.dtypes;
  for (DType t : row.further_dtypes()) all.push_back(t);
  return all;
}

void expect_close(const Array& got, const Array& want, double epsilon, double magnitude, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double g = got.values[i], w = want.values[i];
    if (std::isnan(w) || std::isnan(g) || std::isinf(w) || std::isinf(g)) {
      ASSERT_TRUE(std::isnan(w) ? std::isnan(g) : g == w)
          << what << " element " << i << ": got " << g << ", want " << w;
      continue;
    }
    ASSERT_LE(std::abs(g - w), epsilon * std::max(std::abs(w), magnitude))
        << what << " element " << i << ": got " << g << ", want " << w;
  }
}

/// Rounds a reference to the dtype that was asked, so that overflow is overflow.
Array rounded(Array array, DType t) {
  for (double& x : array.values) {
    if (t == f64) continue;
    const bool largest = t == u64 && x == 0x1p64;  // as near as a double comes
    x = is_floating(t) ? rounded_to(t, x) : largest ? x : scalar::wrapped(x, t).v;
    if (is_floating(t) && std::abs(x) < std::numeric_limits<float>::min()) x = 0;
  }
  return array;
}

/// What errors are measured by at least: subnormals of f16 are an equal distance apart.
double least_magnitude(const Row& row, DType t) { return t == f16 ? std::max(row.magnitude, 0x1p-14) : row.magnitude; }

/// All cases are recorded before any is observed, so that they are computed as one program.
TEST_P(OpRow, ValuesMatchTheReference) {
  struct Expected {
    std::string what;
    DType dtype;
    Tensor y;
    std::vector<Array> wants;
  };
  std::vector<Expected> all;
  const auto expect = [&](DType t, const std::vector<Shape>& shapes) {
    const Case c = make_case(shapes, t);
    const Tensor y = row().apply(c.inputs);
    Expected expected{text(row().name, " of ", t, " ", listed(shapes)), t, y, {}};
    expected.wants.push_back(oracle(y));
    if (row().reference) expected.wants.push_back(row().reference(c.arrays));
    all.push_back(std::move(expected));
  };
  for (DType t : row().dtypes)
    for (const auto& shapes : row().shapes) expect(t, shapes);
  for (DType t : row().further_dtypes())
    for (const auto& shapes : few_shapes()) expect(t, shapes);
  for (const Expected& e : all)
    for (const Array& want : e.wants)
      expect_close(to_array(e.y), rounded(want, e.y.dtype()), row().tolerance * epsilon_of(e.dtype),
                   least_magnitude(row(), e.dtype), e.what);
}

/// What the row says that it covers stands in the graph.
TEST_P(OpRow, CoversWhatItSays) {
  const Case c = make_case(row().shapes.front(), row().dtypes.front());
  const RecordingScope keep;  // copies are made at once
  const std::vector<std::string> names = ops_in(row().apply(c.inputs));
  for (const std::string& name : row().covers) {
    const auto op = registered_ops().find(name);
    ASSERT_NE(op, registered_ops().end()) << name << " is no op";
    EXPECT_TRUE(op->second->composite || std::ranges::find(names, name) != names.end())
        << name << " does not stand in the graph of row " << row().name;
  }
}

double sum_of_products(const Tensor& a, const Tensor& b) {
  const Array x = to_array(a), y = to_array(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.values.size(); ++i) sum += x.values[i] * y.values[i];
  return sum;
}

/// `f` is a scalar function of tensors; its gradients against central differences along random directions. The values
/// are only recorded: what checks them runs when all of a row are.
struct Differences {
  struct Pair {
    std::string what;
    Tensor above, below, gradient, direction;
  };
  static constexpr double step = 1e-5;
  std::vector<Pair> pairs;
  std::vector<double> scales;

  void add(const std::string& what, const std::function<Tensor(In)>& f, const Tensors& at, std::size_t which,
           const Tensor& gradient, const Tensor& direction) {
    Tensors above = at, below = at;
    const Tensor move = direction * step;
    above[which] = at[which] + move;
    below[which] = at[which] - move;
    pairs.push_back({what, f(above), f(below), gradient, direction});
  }
  void check(double slack) const {
    for (const Pair& pair : pairs) {
      const double measured = (pair.above.item() - pair.below.item()) / (2 * step);
      double size = 1;
      for (double x : to_array(pair.gradient).values) size += std::abs(x);
      EXPECT_NEAR(sum_of_products(pair.gradient, pair.direction), measured, 1e-6 * size * slack) << pair.what;
    }
  }
};

TEST_P(OpRow, GradientsMatchDifferences) {
  if (!has_gradients() || !row().smooth) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  Differences differences;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f64);
    const Tensor y = row().apply(c.inputs);
    const Tensor weights = noise(y);
    const auto f = [&, weights](In in) { return reduce_sum(row().apply(in) * weights); };
    const Tensors gradients = vjp(y, c.inputs, weights);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      if (!has_gradient(i, f64)) continue;
      ASSERT_TRUE(gradients[i].defined()) << row().name << " has no gradient by operand " << i;
      ASSERT_EQ(gradients[i].spec(), c.inputs[i].spec());
      for (int k = 0; k < 2; ++k)
        differences.add(text(row().name, " ", listed(shapes), "by operand ", i), f, c.inputs, i, gradients[i],
                        noise(c.inputs[i]));
    }
  }
  differences.check(row().slack);
}

/// g(x, G) = sum over operands of <vjp(f)(x; G), u>: its gradients by x and by the cotangent G.
TEST_P(OpRow, SecondOrderMatchesDifferences) {
  if (!has_gradients() || !row().smooth) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  Differences differences;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f64);
    Tensors at = c.inputs, directions;
    at.push_back(noise(row().apply(c.inputs)));  // the cotangent
    for (const Tensor& source : sources(c.inputs, f64)) directions.push_back(noise(source));
    const auto g = [&, directions](In in) {
      const Tensors inputs(in.begin(), in.end() - 1);
      const Tensors gradients = vjp(row().apply(inputs), sources(inputs, f64), in.back());
      Tensor sum;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const Tensor term = reduce_sum(gradients[i] * directions[i]);
        sum = sum.defined() ? sum + term : term;
      }
      return sum;
    };
    const Tensors gradients = vjp(g(at), at);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const bool cotangent = i + 1 == at.size();
      if (!cotangent && !has_gradient(i, f64)) continue;
      const Tensor gradient = gradients[i].defined() ? gradients[i] : zeros_like(at[i]);  // of a linear op
      differences.add(text(row().name, " ", listed(shapes), cotangent ? "by the cotangent" : text("by operand ", i)), g,
                      at, i, gradient, noise(at[i]));
    }
  }
  differences.check(10 * row().slack);
}

/// Of f16 and bf16 there are no differences to take: their gradients are those in f64 at the same point, but for
/// rounding.
TEST_P(OpRow, NarrowGradientsFollowWideOnes) {
  if (!has_gradients() || !row().smooth) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  struct Pair {
    std::string what;
    DType dtype;
    Tensor narrow, wide;
  };
  std::vector<Pair> pairs;
  const auto widened = [](const Tensor& x) { return is_narrow(x.dtype()) ? cast(x, f64) : x; };
  for (DType t : row().further_dtypes())
    for (const auto& shapes : few_shapes()) {
      if (!is_narrow(t) || !worth_differences(shapes)) continue;
      const Case c = make_case(shapes, t);
      Tensors inputs;
      for (const Tensor& input : c.inputs) inputs.push_back(widened(input));
      const Tensor y = row().apply(c.inputs), wide = row().apply(inputs), seed = noise(y);
      const Tensors narrow = vjp(y, c.inputs, seed), expected = vjp(wide, inputs, cast(seed, wide.dtype()));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!has_gradient(i, t)) continue;
        ASSERT_EQ(narrow[i].spec(), c.inputs[i].spec());
        pairs.push_back(
            {text(row().name, " of ", t, " ", listed(shapes), "by operand ", i), t, narrow[i], expected[i]});
      }
    }
  for (const Pair& pair : pairs) {
    const Array want = to_array(pair.wide);
    double size = 1;
    for (double x : want.values) size = std::max(size, std::abs(x));
    expect_close(to_array(pair.narrow), want, 4 * std::max(row().tolerance, 1.0) * epsilon_of(pair.dtype), size,
                 pair.what);
  }
}

TEST_P(OpRow, IntegersAndBooleansHaveNoGradient) {
  for (DType t : all_of(row())) {
    if (is_floating(t) && row().differentiable) continue;
    const Case c = make_case(row().shapes.front(), t);
    for (const Tensor& gradient : vjp(row().apply(c.inputs), c.inputs))
      EXPECT_FALSE(gradient.defined()) << row().name << " of " << t;
  }
}

void expect_same_bits(const Tensors& got, const Tensors& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(bitwise_equal(got[i], want[i])) << what << ": result " << i << ", " << got[i].spec();
}

/// The first sight of a structure is interpreted.
TEST_P(OpRow, LazyAndTracedAgreeInEveryBit) {
  Batch batch = make_batch(row().shapes, row().dtypes);
  batch.append(make_batch({row().shapes.back()}, row().further_dtypes()));
  const Tensors inputs = batch.inputs(), lazy = batch.apply(inputs);
  for (const Tensor& x : lazy) x.observed();
  TracedFunction function({}, nullptr, 0);
  for (const char* call : {"first, interpreted", "second, compiled"}) {
    const Called traced = function.call(inputs, {}, [&](In in) { return Called{batch.apply(in), {}}; });
    expect_same_bits(lazy, traced.tensors, row().name + ", lazy and traced, call " + call);
  }
}

/// The second is compiled. One case tells, since what is compiled of the others was compared above.
TEST_P(OpRow, LazyTwiceAgreesInEveryBit) {
  const Batch batch = make_batch({row().shapes.back()}, {row().dtypes.front()});
  const Tensors inputs = batch.inputs();
  Tensors results[3];
  for (Tensors& result : results) {
    result = batch.apply(inputs);
    for (const Tensor& x : result) x.observed();
    expect_same_bits(result, results[0], row().name + ", seen once and again");
  }
}

/// All tuples of the usual special numbers.
std::vector<std::vector<double>> usual_specials(std::size_t operands) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> each{0.0, -0.0, 1, -1, 0.5, -2.5, 100, -100, inf, -inf, nan};
  std::vector<std::vector<double>> tuples{{}};
  for (std::size_t k = 0; k < operands; ++k) {
    std::vector<std::vector<double>> longer;
    for (const auto& tuple : tuples)
      for (double x : each) {
        longer.push_back(tuple);
        longer.back().push_back(x);
      }
    tuples = std::move(longer);
  }
  return tuples;
}

/// One vector an operand, of the k-th numbers of all tuples.
std::vector<Array> columns(const std::vector<std::vector<double>>& tuples, std::size_t operands) {
  std::vector<Array> arrays(operands, Array{{static_cast<std::int64_t>(tuples.size())}, {}});
  for (const auto& tuple : tuples)
    for (std::size_t k = 0; k < operands; ++k) arrays[k].values.push_back(tuple[k]);
  return arrays;
}

TEST_P(OpRow, SpecialValuesMatchTheReference) {
  if (!row().elementwise || row().skip_specials) GTEST_SKIP() << "not elementwise";
  for (DType t : all_of(row())) {
    if (!is_floating(t)) continue;
    const auto tuples = row().specials.empty() ? usual_specials(row().operands.size()) : row().specials;
    std::vector<Array> arrays = columns(tuples, row().operands.size());
    Tensors inputs;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (dtype_of(i, t) == boolean)
        for (double& x : arrays[i].values) x = x > 0;
      for (double& x : arrays[i].values) x = rounded_to(dtype_of(i, t), x);
      inputs.push_back(to_tensor(arrays[i], dtype_of(i, t)));
    }
    const Tensor y = row().apply(inputs);
    const Array want = row().reference ? row().reference(arrays) : oracle(y);
    expect_close(to_array(y), rounded(want, y.dtype()), row().tolerance * epsilon_of(t), least_magnitude(row(), t),
                 text(row().name, " of ", t, " at special values"));
  }
}

TEST_P(OpRow, GradientsAtKinksAndPoles) {
  if (row().slopes.empty()) GTEST_SKIP() << "no kinks";
  const std::size_t n = row().operands.size();
  for (DType t : all_of(row())) {
    if (!is_floating(t)) continue;
    std::vector<std::vector<double>> at;
    Array seed{{static_cast<std::int64_t>(row().slopes.size())}, {}};
    for (const Slope& slope : row().slopes) {
      at.push_back(slope.at);
      seed.values.push_back(slope.cotangent);
    }
    const std::vector<Array> arrays = columns(at, n);
    Tensors inputs;
    for (std::size_t i = 0; i < n; ++i) inputs.push_back(to_tensor(arrays[i], dtype_of(i, t)));
    const Tensors gradients = vjp(row().apply(inputs), inputs, to_tensor(seed, t));
    for (std::size_t i = 0; i < n; ++i) {
      if (!has_gradient(i, t)) continue;
      const Array got = to_array(gradients[i]);
      for (std::size_t k = 0; k < row().slopes.size(); ++k) {
        const double want = row().slopes[k].gradient[i], g = got.values[k];
        EXPECT_TRUE(std::isnan(want) ? std::isnan(g)
                                     : g == want || std::abs(g - want) <= 8 * epsilon_of(t) * std::abs(want))
            << row().name << " of " << t << ", point " << k << ", operand " << i << ": got " << g << ", want " << want;
      }
    }
  }
}

TEST_P(OpRow, GradientsAreLinearInTheCotangent) {
  if (!has_gradients()) GTEST_SKIP() << "no gradient";
  const RecordingScope keep;
  for (const auto& shapes : row().shapes) {
    if (!worth_differences(shapes)) continue;
    const Case c = make_case(shapes, f32);
    const Tensor y = row().apply(c.inputs);
    const Tensor seed = noise(y);
    const Tensors from = sources(c.inputs, f32);
    const Tensors once = vjp(y, from, seed);
    for (double factor : {1e-12, 1e12}) {
      const Tensors scaled = vjp(y, from, seed * factor);
      for (std::size_t i = 0; i < from.size(); ++i) {
        const Array a = to_array(scaled[i]), b = to_array(once[i]);
        double size = 0;
        for (double x : b.values) size = std::max(size, std::abs(x));
        for (std::size_t k = 0; k < a.values.size(); ++k)
          ASSERT_NEAR(a.values[k] / factor, b.values[k], 1e-5 * std::max(std::abs(b.values[k]), 1e-2 * size))
              << row().name << " " << listed(shapes) << "operand " << i << " at scale " << factor;
      }
    }
    break;  // one case of several elements tells
  }
}

/// Throws InvalidArgument or OutOfRange, naming `expected`.
void expect_mistake(const std::function<void()>& call, const std::string& expected, const std::string& what) {
  try {
    call();
    ADD_FAILURE() << what << " was accepted";
  } catch (const Error& error) {
    EXPECT_TRUE(dynamic_cast<const InvalidArgument*>(&error) || dynamic_cast<const OutOfRange*>(&error)) << what;
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos)
        << what << ": the message lacks `" << expected << "`: " << error.what();
  }
}

TEST_P(OpRow, MistakesAreNamed) {
  const auto refused = [&](const Tensors& inputs, const std::string& expected, const std::string& what) {
    expect_mistake([&] { row().apply(inputs); }, expected, row().name + ": " + what);
  };
  const std::string called = row().called.empty() ? row().name : row().called;
  const DType t = row().dtypes.front();
  const Tensors good = make_case(row().shapes.back(), t).inputs;
  for (std::size_t i = 0; i < good.size(); ++i) {
    Tensors bad = good;
    bad[i] = {};
    refused(bad, "empty", text("operand ", i, " is an empty handle"));
  }
  if (row().elementwise) {
    for (DType other : all_dtypes) {
      const std::vector<DType> taken = all_of(row());
      const bool accepted = std::ranges::find(taken, other) != taken.end();
      if (row().refuses ? std::ranges::find(*row().refuses, other) == row().refuses->end() : accepted) continue;
      Tensors bad;
      for (std::size_t i = 0; i < good.size(); ++i)
        bad.push_back(to_tensor({{1}, {1}}, row().operands[i].dtype.value_or(other)));
      refused(bad, called, text("operands of ", other));
    }
    const std::size_t last = good.size() - 1;
    if (last > 0 && !row().operands[last].dtype && !row().operands[last - 1].dtype) {
      Tensors bad = good;
      bad[last] = to_tensor({{1}, {1}}, t == f32 ? f64 : f32);
      refused(bad, called, "operands of two dtypes");
      bad[last - 1] = to_tensor({{3}, {1, 1, 1}}, dtype_of(last - 1, t));
      bad[last] = to_tensor({{4}, {1, 1, 1, 1}}, t);
      refused(bad, called, "shapes that do not broadcast");
    }
  }
  for (const Mistake& mistake : row().mistakes) expect_mistake(mistake.call, mistake.expected, row().name);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpRow, ::testing::ValuesIn(all_rows()), test_name);

/// The registered ops that none of `rows` covers.
std::vector<std::string> uncovered(std::span<const Row> rows) {
  std::set<std::string_view> covered;
  for (const Row& row : rows) covered.insert(row.covers.begin(), row.covers.end());
  std::vector<std::string> missing;
  for (const auto& [name, type] : registered_ops())
    if (!covered.contains(name)) missing.emplace_back(name);
  return missing;
}

TEST(OpRows, CoverEveryRegisteredOp) {
  for (const std::string& name : uncovered(all_rows()))
    ADD_FAILURE() << "the op `" << name << "` has no row: add one to tests/ops/rows_*.cpp";
}

TEST(OpRows, AMissingRowIsNoticed) {
  std::vector<Row> rows = all_rows();
  const std::vector<std::string> before = uncovered(rows);
  std::erase_if(rows, [](const Row& row) { return row.name == "softplus"; });
  std::vector<std::string> noticed = uncovered(rows);
  std::erase_if(noticed, [&](const std::string& name) { return std::ranges::count(before, name) > 0; });
  EXPECT_EQ(noticed, std::vector<std::string>{"softplus"});
}

TEST(OpRows, HaveDistinctNames) {
  std::set<std::string> names;
  for (const Row& row : all_rows()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

}  // namespace
}  // namespace gradus::rows::rows_test
