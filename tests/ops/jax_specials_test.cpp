/// Op rows against JAX where numbers end: values and gradients at 0, 1, the largest and smallest numbers, infinities
/// and NaN, stored in jax/specials.safetensors, which jax/make_specials.py computes from the cases that this test
/// writes if GRADUS_WRITE_JAX_SPECIALS names a file. Where the two differ, and why, stands in jax/specials_differ.txt.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include "gradus/autodiff/vjp.h"
#include "gradus/formats/safetensors.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows {
namespace {

const std::filesystem::path folder = GRADUS_JAX_FOLDER;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

using Arrays64 = std::map<std::string, Array>;

/// By row and number: "softmax|1".
std::map<std::string, Arrays64> stored_cases() {
  std::map<std::string, Arrays64> cases;
  for (const NamedArray& array : read_safetensors(folder / "specials.safetensors")) {
    const std::size_t bar = array.name.rfind('|');
    const auto* values = reinterpret_cast<const double*>(array.data->data());
    cases[array.name.substr(0, bar)][array.name.substr(bar + 1)] = {
        array.spec.shape, std::vector<double>(values, values + array.spec.shape.size())};
  }
  return cases;
}

/// The names before ": " of the lines of a file.
std::map<std::string, std::string> reasons_in(const std::string& file) {
  std::map<std::string, std::string> reasons;
  std::ifstream in(folder / file);
  for (std::string line; std::getline(in, line);)
    if (const std::size_t colon = line.find(": "); !line.starts_with('#') && colon != std::string::npos)
      reasons[line.substr(0, colon)] = line.substr(colon + 2);
  return reasons;
}

/// What is compared: one number of a kind. Finite numbers are near each other, or as far apart as roundings at the ends
/// of the range can bring them, which other tests look at.
bool agree(double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= 1e-6 * std::max({1.0, std::abs(got), std::abs(want)});
}

class AtSpecials : public RowTest {
 protected:
  bool is_compared() const {
    const auto& all = row().dtypes;
    return std::ranges::find(all, f64) != all.end() && !row().operands.empty() &&
           !reasons_in("without_counterpart.txt").contains(row().name);
  }
  bool takes_specials(std::size_t operand) const { return is_floating(dtype_of(operand, f64)); }

  /// All pairs of special numbers of one elementwise op.
  std::vector<std::vector<Array>> tuples() {
    const std::vector<double> many{0.0, -0.0, 1, -1, 0.5, -2.5, 1.5e308, -1.5e308, 3e-308, inf, -inf, nan};
    const std::vector<double> few{0.0, 1, -2, inf, -inf, nan};
    const std::size_t n = row().operands.size();
    const std::vector<double>& each = n < 3 ? many : few;
    std::size_t count = 1;
    for (std::size_t k = 0; k < n; ++k) count *= each.size();
    std::vector<Array> arrays;
    std::size_t step = 1;
    for (std::size_t k = 0; k < n; ++k, step *= each.size()) {
      Array array{{static_cast<std::int64_t>(count)}, {}};
      for (std::size_t i = 0; i < count; ++i) array.values.push_back(each[i / step % each.size()]);
      if (!takes_specials(k))
        for (double& x : array.values) x = x > 0;
      arrays.push_back(std::move(array));
    }
    return {arrays};
  }
  /// Of any other op: one operand with a special number as its first element, or as all of them.
  std::vector<std::vector<Array>> placed() {
    std::vector<std::vector<Array>> cases;
    for (const auto& shapes : row().shapes) {
      std::int64_t most = 0, least = 1;
      for (const Shape& shape : shapes) most = std::max(most, shape.size()), least = std::min(least, shape.size());
      if (least == 0 || most > 24 || most < 2) continue;
      const Case base = make_case(shapes, f64);
      for (std::size_t k = 0; k < shapes.size(); ++k)
        for (const double special : {0.0, inf, -inf, nan})
          for (const bool everywhere : {false, true}) {
            if (!takes_specials(k)) continue;
            cases.push_back(base.arrays);
            auto& values = cases.back()[k].values;
            if (everywhere) std::ranges::fill(values, special);
            else values[0] = special;
          }
      break;
    }
    return cases;
  }
};

TEST_P(AtSpecials, ValuesAndGradientsAgree) {
  static const std::map<std::string, Arrays64> cases = stored_cases();
  static const std::map<std::string, std::string> differ = reasons_in("specials_differ.txt");
  if (!is_compared() || !cases.contains(row().name + "|0")) GTEST_SKIP() << "nothing to compare with";
  const RecordingScope keep;
  std::vector<std::string> differences;
  for (int number = 0; cases.contains(text(row().name, '|', number)); ++number) {
    const Arrays64& stored = cases.at(text(row().name, '|', number));
    Tensors inputs;
    std::string given;
    for (std::size_t i = 0; stored.contains(text("in", i)); ++i)
      inputs.push_back(to_tensor(stored.at(text("in", i)), dtype_of(i, f64)));
    const Tensor y = row().apply(inputs);
    const auto compare = [&](const std::string& what, const Tensor& got, const Array& want) {
      const Array values = to_array(got);
      ASSERT_EQ(values.shape, want.shape) << row().name << " case " << number << ' ' << what;
      for (std::size_t i = 0; i < want.values.size(); ++i) {
        if (agree(values.values[i], want.values[i])) continue;
        std::string at;
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          const Array& in = stored.at(text("in", k));
          at += text(' ', in.shape == want.shape ? in.values[i] : in.values[0]);
        }
        differences.push_back(
            text("case ", number, ' ', what, '[', i, "] at", at, ": ", values.values[i], ", JAX ", want.values[i]));
      }
    };
    compare("value", y, stored.at("y"));
    if (!stored.contains("d0") && !stored.contains("d1") && !stored.contains("d2")) continue;
    const Tensors found = vjp(y, inputs, ones_like(y));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const auto want = stored.find(text('d', i)); want != stored.end())
        compare(text("gradient ", i), found[i].defined() ? found[i] : zeros_like(inputs[i]), want->second);
  }
  std::string all;
  for (const std::string& each : differences) all += "\n  " + each;
  if (differ.contains(row().name)) EXPECT_FALSE(differences.empty()) << row().name << " agrees: take it off the list";
  else EXPECT_TRUE(differences.empty()) << row().name << all;
}

/// Elementwise ops, applied behind a `where` that takes the other branch: whose gradient is 0 there at every number,
/// and whose may be NaN, as docs/from-tensorflow.md says.
TEST_P(AtSpecials, BehindWhere) {
  static const std::map<std::string, std::string> open = reasons_in("open_behind_where.txt");
  if (!row().elementwise || !is_compared()) GTEST_SKIP() << "not elementwise";
  Tensors inputs;
  const std::vector<Array> arrays = tuples()[0];
  for (const Array& array : arrays) inputs.push_back(to_tensor(array, dtype_of(inputs.size(), f64)));
  const Tensor y = row().apply(inputs);
  if (!is_floating(y.dtype())) return;
  std::string found;
  for (const Tensor& gradient : vjp(y, inputs, zeros_like(y))) {
    if (!gradient.defined()) continue;
    const std::vector<double> values = to_array(gradient).values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool of_nan = std::ranges::any_of(arrays, [i](const Array& x) { return std::isnan(x.values[i]); });
      if (values[i] == 0 || of_nan) continue;
      found += "\n  at";
      for (const Tensor& x : inputs) found += text(' ', to_array(x).values[i]);
    }
  }
  if (open.contains(row().name)) EXPECT_FALSE(found.empty()) << row().name << " is solved: take it off the list";
  else EXPECT_TRUE(found.empty()) << row().name << found;
}

/// Not a check: what the script starts from.
TEST_P(AtSpecials, CasesForTheScript) {
  static std::vector<NamedArray> written;
  const char* file = std::getenv("GRADUS_WRITE_JAX_SPECIALS");
  if (!file) GTEST_SKIP() << "GRADUS_WRITE_JAX_SPECIALS is not set";
  if (!is_compared()) return;
  int number = 0;
  const auto add = [&](const std::string& name, const Array& array) {
    Ref<Buffer> data = Buffer::allocate(array.shape.size() * static_cast<std::int64_t>(sizeof(double)));
    std::ranges::copy(array.values, reinterpret_cast<double*>(data->data()));
    written.push_back({name, {f64, array.shape}, std::move(data)});
  };
  for (const std::vector<Array>& arrays : row().elementwise ? tuples() : placed()) {
    const std::string name = text(row().name, '|', number++, '|');
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      add(text(name, "in", i), arrays[i]);
      if (has_gradient(i, f64)) add(text(name, 'v', i), {{0}, {}});  // that it has one
    }
  }
  write_safetensors(file, written);
}

INSTANTIATE_TEST_SUITE_P(Ops, AtSpecials, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows
