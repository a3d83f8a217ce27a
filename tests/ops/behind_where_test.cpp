/// Elementwise ops behind a `where` that takes the other branch: whose gradient is 0 there at every number, poles,
/// places outside of the domain and infinities too, and whose may be NaN, as docs/from-tensorflow.md says.
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include "gradus/autodiff/vjp.h"
#include "gradus/ops/constant.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::behind_where_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr auto overflow = "the slope overflows", at_infinity = "at infinity the slope is infinity times 0, or none",
               product = "a product: 0 times an infinite factor";

/// Those whose gradient may be NaN, each with the reason.
const std::map<std::string, std::string> open{
    {"atan2", overflow},
    {"exp", overflow},
    {"exponential", overflow},
    {"expm1", overflow},
    {"exp2", overflow},
    {"sinh", overflow},
    {"cosh", overflow},
    {"square", overflow},
    {"integer_power 2", overflow},
    {"integer_power 3", overflow},
    {"integer_power 7", overflow},
    {"bessel_i0", overflow},
    {"bessel_i1", overflow},
    {"sigmoid_grad", overflow},
    {"tanh_grad", overflow},
    {"squared_difference", overflow},
    {"polygamma of a tensor", overflow},
    {"sin", at_infinity},
    {"cos", at_infinity},
    {"tan", at_infinity},
    {"silu of beta 2", at_infinity},
    {"fresnel_cos", at_infinity},
    {"fresnel_sin", at_infinity},
    {"multiply", product},
    {"prelu", product},
    {"sigmoid_crossentropy", product},
    {"polyval", product},
};

class BehindWhere : public RowTest {
 protected:
  /// All tuples of special numbers, an operand each.
  std::vector<Array> tuples() {
    const std::vector<double> many{0.0, -0.0, 1, -1, 0.5, -2.5, 1.5e308, -1.5e308, 3e-308, inf, -inf};
    const std::vector<double> few{0.0, 1, -2, inf, -inf};
    const std::size_t n = row().operands.size();
    const std::vector<double>& each = n < 3 ? many : few;
    std::size_t count = 1, step = 1;
    for (std::size_t k = 0; k < n; ++k) count *= each.size();
    std::vector<Array> arrays;
    for (std::size_t k = 0; k < n; ++k, step *= each.size()) {
      Array array{{static_cast<std::int64_t>(count)}, {}};
      for (std::size_t i = 0; i < count; ++i) array.values.push_back(each[i / step % each.size()]);
      if (!is_floating(dtype_of(k, f64)))
        for (double& x : array.values) x = x > 0;
      arrays.push_back(std::move(array));
    }
    return arrays;
  }
};

TEST_P(BehindWhere, AGradientOfZeroStaysZero) {
  const bool takes_f64 = std::ranges::find(row().dtypes, f64) != row().dtypes.end();
  if (!row().elementwise || !row().differentiable || !takes_f64) GTEST_SKIP() << "not elementwise";
  const std::vector<Array> arrays = tuples();
  Tensors inputs;
  for (const Array& array : arrays) inputs.push_back(to_tensor(array, dtype_of(inputs.size(), f64)));
  const Tensor y = row().apply(inputs);
  if (!is_floating(y.dtype())) return;
  std::string found;
  for (const Tensor& gradient : vjp(y, inputs, zeros_like(y))) {
    if (!gradient.defined()) continue;
    const std::vector<double> values = to_array(gradient).values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      found += "\n  at";
      for (const Array& x : arrays) found += text(' ', x.values[i]);
    }
  }
  if (open.contains(row().name)) EXPECT_FALSE(found.empty()) << row().name << " is solved: take it off the list";
  else
    EXPECT_TRUE(found.empty())
        << row().name << ": behind a where that takes the other branch its gradient is NaN" << found
        << "\n  write its vjp so that 0 stays 0 there, or name the row in `open`, with the reason";
}

INSTANTIATE_TEST_SUITE_P(Ops, BehindWhere, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::behind_where_test
