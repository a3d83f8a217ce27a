/// Op rows against JAX in float64: values, gradients and second derivatives stored in jax/reference.safetensors, which
/// jax/make_reference.py computes from the cases that this test writes if GRADUS_WRITE_JAX_CASES names a file. Rows
/// that have no f64 are compared by their values in their first type.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include "gradus/autodiff/vjp.h"
#include "gradus/formats/safetensors.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::jax_reference_test {
namespace {

const std::filesystem::path folder = GRADUS_JAX_FOLDER;

/// By name: the arrays of one case. in0, in1 ... the operands; u the cotangent of the result y; v0 ... directions, d0
/// ... the gradients and h0 ... the derivatives of <d0, v0> + <d1, v1> + ... by the operands that have them.
using Arrays64 = std::map<std::string, Array>;

/// By row and number: "softmax|1".
std::map<std::string, Arrays64> stored_cases() {
  std::map<std::string, Arrays64> cases;
  for (const NamedArray& array : read_safetensors(folder / "reference.safetensors")) {
    const std::size_t bar = array.name.rfind('|');
    const auto* values = reinterpret_cast<const double*>(array.data->data());
    cases[array.name.substr(0, bar)][array.name.substr(bar + 1)] = {
        array.spec.shape, std::vector<double>(values, values + array.spec.shape.size())};
  }
  return cases;
}

/// Rows that JAX has nothing to compare with, each with the reason.
std::map<std::string, std::string> without_counterpart() {
  std::map<std::string, std::string> reasons;
  std::ifstream in(folder / "without_counterpart.txt");
  for (std::string line; std::getline(in, line);)
    if (const std::size_t colon = line.find(": "); !line.starts_with('#') && colon != std::string::npos)
      reasons[line.substr(0, colon)] = line.substr(colon + 2);
  return reasons;
}

TEST(AgainstJaxList, NamesRowsWithReasons) {
  for (const auto& [name, reason] : without_counterpart()) {
    EXPECT_TRUE(std::ranges::any_of(all_rows(), [&](const Row& row) { return row.name == name; })) << name;
    EXPECT_GT(reason.size(), 20u) << name;
  }
}

class AgainstJax : public RowTest {
 protected:
  /// The two largest of those with at most 24 elements an operand; else the smallest that there is.
  std::vector<Case> small_cases() {
    std::multimap<std::int64_t, Case> by_size;
    for (const auto& shapes : row().shapes) {
      std::int64_t most = 0, least = 1;
      for (const Shape& shape : shapes) most = std::max(most, shape.size()), least = std::min(least, shape.size());
      if (least > 0) by_size.emplace(most, make_case(shapes, type()));
    }
    std::vector<Case> cases;
    for (auto& [size, each] : by_size)
      if (size <= 24 || cases.empty()) cases.push_back(std::move(each));
    if (cases.size() > 2) cases.erase(cases.begin(), cases.end() - 2);
    return cases;
  }
  /// f64, or what the row has instead.
  DType type() const {
    const auto& all = row().dtypes;
    return all.empty() || std::ranges::find(all, f64) != all.end() ? f64 : all.front();
  }
};

void write(std::vector<NamedArray>& out, const std::string& name, const Array& array) {
  Ref<Buffer> data = Buffer::allocate(array.shape.size() * static_cast<std::int64_t>(sizeof(double)));
  std::ranges::copy(array.values, reinterpret_cast<double*>(data->data()));
  out.push_back({name, {f64, array.shape}, std::move(data)});
}

std::vector<NamedArray>& written() {
  static std::vector<NamedArray> arrays;
  return arrays;
}

void expect_near(const Tensor& got, const Array& want, const std::string& what) {
  const Array values = to_array(got);
  ASSERT_EQ(values.shape, want.shape) << what;
  const double accuracy = got.dtype() == f64 ? 1e-10 : got.dtype() == f32 ? 1e-6 : 0;
  double size = 0;
  for (double x : want.values) size = std::isfinite(x) ? std::max(size, std::abs(x)) : size;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    if (std::isfinite(want.values[i]))
      EXPECT_NEAR(values.values[i], want.values[i], accuracy * std::max(size, 1e-3)) << what << " element " << i;
    else EXPECT_EQ(std::isnan(values.values[i]), std::isnan(want.values[i])) << what << " element " << i;
  }
}

TEST_P(AgainstJax, ValuesAndDerivativesAgree) {
  static const std::map<std::string, Arrays64> cases = stored_cases();
  if (without_counterpart().contains(row().name)) GTEST_SKIP() << without_counterpart()[row().name];
  ASSERT_TRUE(cases.contains(row().name + "|0"))
      << "no stored case of `" << row().name
      << "`: write its function and run tests/ops/jax/make_reference.py, or name "
      << "it in without_counterpart.txt with the reason";
  const RecordingScope keep;
  for (int number = 0; cases.contains(text(row().name, '|', number)); ++number) {
    const Arrays64& stored = cases.at(text(row().name, '|', number));
    Tensors inputs;
    for (std::size_t i = 0; stored.contains(text("in", i)); ++i)
      inputs.push_back(to_tensor(stored.at(text("in", i)), dtype_of(i, type())));
    const Tensor y = row().apply(inputs);
    const std::string what = text(row().name, " case ", number, ' ');
    expect_near(y, stored.at("y"), what + "value");
    if (!stored.contains("u")) continue;
    const Tensors found = vjp(y, inputs, cast(to_tensor(stored.at("u"), f64), y.dtype()));
    Tensor sum = constant(0.0, f64);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!stored.contains(text('d', i))) continue;
      const Tensor gradient = found[i].defined() ? found[i] : zeros_like(inputs[i]);
      expect_near(gradient, stored.at(text('d', i)), text(what, "gradient ", i));
      sum = sum + reduce_sum(gradient * to_tensor(stored.at(text('v', i)), f64));
    }
    const Tensors second = vjp(sum, inputs, constant(1.0, f64));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const auto want = stored.find(text('h', i)); want != stored.end())
        expect_near(second[i].defined() ? second[i] : zeros_like(inputs[i]), want->second,
                    text(what, "second derivative ", i));
  }
}

/// Not a check: what the script starts from.
TEST_P(AgainstJax, CasesForTheScript) {
  const char* file = std::getenv("GRADUS_WRITE_JAX_CASES");
  if (!file) GTEST_SKIP() << "GRADUS_WRITE_JAX_CASES is not set";
  if (without_counterpart().contains(row().name)) return;
  int number = 0;
  for (const Case& c : small_cases()) {
    const std::string name = text(row().name, '|', number++, '|');
    if (c.arrays.empty()) write(written(), name + "nothing", {{0}, {}});  // so that the row is there
    for (std::size_t i = 0; i < c.arrays.size(); ++i) {
      write(written(), text(name, "in", i), c.arrays[i]);
      if (type() == f64 && has_gradient(i, f64)) write(written(), text(name, 'v', i), draw({-1, 1}, c.shapes[i], f64));
    }
    const Tensor y = row().apply(c.inputs);
    if (type() == f64 && has_gradients() && is_floating(y.dtype()) && !c.arrays.empty())
      write(written(), name + "u", draw({-1, 1}, y.shape(), f64));
  }
  write_safetensors(file, written());
}

INSTANTIATE_TEST_SUITE_P(Ops, AgainstJax, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::jax_reference_test
