/// The accuracy of elementwise functions, and of slopes whose terms would cancel: f64 against values by mpmath, stored
/// by accuracy/make_values.py; f32, f16 and bf16 against the function of f64. The table of docs/accuracy.md has the
/// bounds. GRADUS_ACCURACY=all takes every number of f16 and bf16, otherwise every 37th. GRADUS_ACCURACY_TABLE names a
/// file for the measured table.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include "gradus/formats/safetensors.h"
#include "gradus/gradus.h"

namespace gradus::accuracy_test {
namespace {

const std::filesystem::path values_file = GRADUS_ACCURACY_VALUES, table_file = GRADUS_ACCURACY_PAGE;

using Function = std::function<Tensor(const Tensor&, const Tensor&)>;

/// A function of one argument from `set`, or of two if `second` names a set, too.
struct Subject {
  std::string name, set;
  Function f;
  std::string second = {};
};

Function of_one(Tensor (*f)(const Tensor&)) {
  return [f](const Tensor& x, const Tensor&) { return f(x); };
}
/// The slope of f.
Function slope_of(Tensor (*f)(const Tensor&)) {
  return [f](const Tensor& x, const Tensor&) { return gradient([f](const Tensor& t) { return reduce_sum(f(t)); }, x); };
}
Tensor gelu_by_tanh(const Tensor& x) { return gelu(x, {.approximate = true}); }

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const auto one = [&](const char* name, const char* set, Tensor (*f)(const Tensor&)) {
    all.push_back({name, set, of_one(f)});
  };
  const auto slope = [&](const char* name, Tensor (*f)(const Tensor&)) { all.push_back({name, "all", slope_of(f)}); };
  const auto two = [&](const char* name, Function f) { all.push_back({name, "first", std::move(f), "second"}); };
  one("sqrt", "positive", sqrt), one("rsqrt", "positive", rsqrt), one("exp", "all", exp), one("expm1", "all", expm1);
  one("exp2", "all", exp2), one("log", "positive", log), one("log1p", "above_minus_one", log1p);
  one("log2", "positive", log2), one("log10", "positive", log10), one("cbrt", "all", cbrt), one("sin", "all", sin);
  one("cos", "all", cos), one("tan", "all", tan), one("asin", "unit", asin), one("acos", "unit", acos);
  one("atan", "all", atan), one("sinh", "all", sinh), one("cosh", "all", cosh), one("tanh", "all", tanh);
  one("asinh", "all", asinh), one("acosh", "from_one", acosh), one("atanh", "unit", atanh);
  one("sigmoid", "all", sigmoid), one("log_sigmoid", "all", log_sigmoid), one("softplus", "all", softplus);
  one("softsign", "all", softsign), one("gelu", "all", gelu), one("gelu_tanh", "all", gelu_by_tanh);
  one("silu", "all", silu), one("mish", "all", mish), one("squareplus", "all", squareplus), one("elu", "all", elu);
  one("selu", "all", selu), one("celu", "all", celu), one("tanh_shrink", "all", tanh_shrink), one("erf", "all", erf);
  one("erfc", "all", erfc), one("erfinv", "unit", erfinv), one("erfcinv", "to_two", erfcinv);
  one("ndtri", "probability", ndtri), one("lgamma", "positive", lgamma), one("digamma", "positive", digamma);
  one("polygamma1", "positive", [](const Tensor& x) { return polygamma(1, x); });
  one("bessel_i0e", "all", bessel_i0e), one("bessel_i1e", "all", bessel_i1e);
  one("bessel_i0", "moderate", bessel_i0), one("bessel_i1", "moderate", bessel_i1);
  one("bessel_j0", "ring", bessel_j0), one("bessel_j1", "ring", bessel_j1), one("bessel_y0", "ring", bessel_y0);
  one("bessel_y1", "ring", bessel_y1), one("bessel_j0_far", "far", bessel_j0);
  one("bessel_j1_far", "far", bessel_j1), one("bessel_y0_far", "far", bessel_y0);
  one("bessel_y1_far", "far", bessel_y1), one("bessel_k0", "positive", bessel_k0);
  one("bessel_k1", "positive", bessel_k1), one("bessel_k0e", "positive", bessel_k0e);
  one("bessel_k1e", "positive", bessel_k1e);
  one("fresnel_cos", "hundred", fresnel_cos), one("fresnel_sin", "hundred", fresnel_sin);
  one("expint", "ring", expint), one("spence", "positive", spence), one("dawsn", "all", dawsn);
  one("sinc", "all", sinc), one("reciprocal", "all", reciprocal), one("square", "all", square);
  one("deg2rad", "all", deg2rad), one("rad2deg", "all", rad2deg);
  slope("tanh'", tanh), slope("gelu'", gelu), slope("gelu_tanh'", gelu_by_tanh), slope("silu'", silu);
  slope("mish'", mish), slope("softsign'", softsign), slope("squareplus'", squareplus), slope("dawsn'", dawsn);
  slope("fresnel_cos'", fresnel_cos), slope("fresnel_sin'", fresnel_sin), slope("sin'", sin), slope("cos'", cos);
  all.push_back({"pow", "base", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, "power"});
  two("mod", [](const Tensor& a, const Tensor& b) { return mod(a, b); });
  two("truncatemod", [](const Tensor& a, const Tensor& b) { return truncatemod(a, b); });
  two("atan2", [](const Tensor& a, const Tensor& b) { return atan2(a, b); });
  two("hypot", [](const Tensor& a, const Tensor& b) { return hypot(a, b); });
  two("divide", [](const Tensor& a, const Tensor& b) { return a / b; });
  two("squared_difference", [](const Tensor& a, const Tensor& b) { return squared_difference(a, b); });
  two("logaddexp", [](const Tensor& a, const Tensor& b) { return logaddexp(a, b); });
  return all;
}

// ---------------------------------------------------------------- the table

/// A row of the page: the largest error in units of the last place, by type. If `scale` is 1 and not 0, results below 1
/// have the units of 1.
struct Bounds {
  double scale = 0;
  std::map<DType, double> ulps;
};

/// Cells of a row "| a | b |".
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

std::map<std::string, Bounds> table() {
  std::map<std::string, Bounds> rows;
  std::ifstream in(table_file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> cells = cells_of(line);
    Bounds& row = rows[cells.at(0).substr(1, cells[0].size() - 2)];
    row.scale = std::stod(cells.at(1));
    const DType types[] = {f64, f32, f16, bf16};
    for (std::size_t i = 0; i < 4; ++i) row.ulps[types[i]] = std::stod(cells.at(2 + i));
  }
  return rows;
}

// ---------------------------------------------------------------- errors

struct Format {
  int digits, least, most;  // of the significand; exponents e of the normal numbers 2^e, and the first 2^e beyond
  bool flushes;             // results below the least normal number may be 0
};
Format format_of(DType t) {
  if (t == f64) return {53, -1022, 1024, true};
  if (t == f32) return {24, -126, 128, true};
  return t == f16 ? Format{11, -14, 16, false} : Format{8, -126, 128, true};
}

/// |got - want| in units of the last place of `want`, but at least those of `scale`.
double error_of(DType t, double got, double want, double scale) {
  const Format format = format_of(t);
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : HUGE_VAL;
  const double end = std::ldexp(1.0L, std::min(format.most, 1023));
  const double least = std::ldexp(1, format.least);
  if (format.flushes && std::abs(want) < least && std::abs(got) <= least) return 0;
  if (format.flushes && std::abs(want) < 4 * least && got == 0) return 0;
  const auto bounded = [&](double x) { return t != f64 && std::abs(x) > end ? std::copysign(end, x) : x; };
  got = bounded(got), want = bounded(want);
  if (got == want) return 0;
  if (std::isinf(got) || std::isinf(want)) return HUGE_VAL;
  int exponent = 0;
  std::frexp(std::max({std::abs(want), scale, least}), &exponent);
  return std::abs(got - want) / std::ldexp(1.0L, exponent - format.digits);
}

struct Worst {
  double ulps = 0, at = 0, beside = 0;
};

Worst worst_of(DType t, const Tensor& got, const Tensor& want, double scale, const Tensor& x, const Tensor& y) {
  const auto numbers = [](const Tensor& each) { return cast(each, f64).to_vector<double>(); };
  const std::vector<double> a = numbers(got), b = numbers(want), at = numbers(x), beside = numbers(y);
  Worst worst;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double error = error_of(t, a[i], b[i], scale); !(error <= worst.ulps)) worst = {error, at[i], beside[i]};
  return worst;
}

// ---------------------------------------------------------------- arguments

const std::map<std::string, Tensor>& stored() {
  static const std::map<std::string, Tensor> all = [] {
    std::map<std::string, Tensor> arrays;
    for (const auto& [name, tensor] : load_safetensors(values_file)) arrays[name] = tensor;
    return arrays;
  }();
  return all;
}

struct Arguments {
  Tensor x, y;
};
Arguments arguments_of(const Subject& subject) {
  const auto at = [](const std::string& name) { return stored().at("x:" + name); };
  return {at(subject.set), at(subject.second.empty() ? subject.set : subject.second)};
}

/// The pairs of which both are normal numbers of type t; for mod, the divisor's last place is normal, too.
Arguments normal(DType t, const Subject& subject, const Arguments& all) {
  const double least = std::ldexp(1, format_of(t).least);
  const auto is_normal = [&](const Tensor& x, double smallest) {
    return logical_and(is_finite(cast(x, t)), abs(cast(cast(x, t), f64)) >= smallest);
  };
  const double divisor = subject.name == "mod" && t != f16 ? std::ldexp(least, format_of(t).digits + 1) : least;
  const Tensor kept = logical_and(is_normal(all.x, least), is_normal(all.y, divisor));
  return {cast(boolean_mask(all.x, kept), t), cast(boolean_mask(all.y, kept), t)};
}

bool takes_all() {
  const char* set = std::getenv("GRADUS_ACCURACY");
  return set && std::string_view(set) == "all";
}

/// Normal numbers of a narrow type, by their bits, within the range of the set; for functions of two arguments, the
/// stored pairs.
Arguments narrow_arguments(DType t, const Subject& subject) {
  const Arguments wide = arguments_of(subject);
  if (!subject.second.empty()) return normal(t, subject, wide);
  const Tensor bits = range(0, 65536, takes_all() ? 1 : 37, u16);
  const Tensor x = bitcast(bits, t), each = cast(x, f64);
  const Tensor within = logical_and(each >= reduce_min(wide.x), each <= reduce_max(wide.x));
  const Tensor kept = boolean_mask(x, logical_and(within, is_finite(x)));
  return normal(t, subject, {cast(kept, f64), cast(kept, f64)});
}

// ---------------------------------------------------------------- the tests

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

class Accuracy : public testing::TestWithParam<Subject> {};

/// Names and worst errors, for the measured table.
void note(const std::string& name, double scale, const std::map<DType, Worst>& worst) {
  const char* file = std::getenv("GRADUS_ACCURACY_TABLE");
  if (!file) return;
  std::ofstream out(file, std::ios::app);
  out << "| `" << name << "` | " << scale;
  for (const DType t : {f64, f32, f16, bf16}) out << " | " << worst.at(t).ulps;
  for (const DType t : {f64, f32, f16, bf16}) out << (t == f64 ? " | " : ", ") << worst.at(t).at;
  out << " |\n";
}

TEST_P(Accuracy, IsWithinTheTable) {
  const Subject& subject = GetParam();
  static const std::map<std::string, Bounds> rows = table();
  const auto found = rows.find(subject.name);
  const Bounds bounds = found == rows.end() ? Bounds{} : found->second;
  EXPECT_TRUE(found != rows.end()) << subject.name << " has no row in " << table_file;
  const Arguments all = arguments_of(subject);
  std::map<DType, Worst> worst;
  worst[f64] = worst_of(f64, subject.f(all.x, all.y), stored().at("y:" + subject.name), bounds.scale, all.x, all.y);
  for (const DType t : {f32, f16, bf16}) {
    const Arguments own = t == f32 ? normal(t, subject, all) : narrow_arguments(t, subject);
    const Tensor want = subject.f(cast(own.x, f64), cast(own.y, f64));
    worst[t] = worst_of(t, subject.f(own.x, own.y), want, bounds.scale, own.x, own.y);
  }
  for (const auto& [t, error] : worst)
    EXPECT_LE(error.ulps, bounds.ulps.contains(t) ? bounds.ulps.at(t) : 0)
        << subject.name << " of " << t << " at " << error.at << ", " << error.beside;
  note(subject.name, bounds.scale, worst);
}

/// Neighbouring elements share a test for rare cases, so the neighbours are changed: the bits must not change.
TEST_P(Accuracy, HasTheSameBitsInEveryWay) {
  const Subject& subject = GetParam();
  for (const DType t : {f64, f32, bf16}) {
    const Arguments own = normal(t, subject, arguments_of(subject));
    const Tensor lazily = subject.f(own.x, own.y);
    auto compiled = function([&](const Tensor& x, const Tensor& y) { return subject.f(x, y); });
    compiled(own.x, own.y);
    EXPECT_TRUE(bitwise_equal(compiled(own.x, own.y), lazily)) << t << " compiled";
    const Tensor order = argsort(own.x), sorted = compiled(gather(own.x, order), gather(own.y, order));
    EXPECT_TRUE(bitwise_equal(sorted, gather(lazily, order))) << t << " sorted";
    const Tensor few = slice(lazily, {5}, {3});
    EXPECT_TRUE(bitwise_equal(subject.f(slice(own.x, {5}, {3}), slice(own.y, {5}, {3})), few)) << t << " three alone";
  }
}

TEST_P(Accuracy, PassesNanOn) {
  const Subject& subject = GetParam();
  for (const DType t : {f64, f32, f16, bf16}) {
    const double number = subject.set == "from_one" ? 1.5 : 0.5;
    const Tensor nan = constant({std::nan(""), number, std::nan("")}, t), one = constant({0.5, 0.5, std::nan("")}, t);
    const std::vector<double> got = cast(subject.f(nan, subject.second.empty() ? nan : one), f64).to_vector<double>();
    EXPECT_TRUE(std::isnan(got[0]) && !std::isnan(got[1]) && std::isnan(got[2])) << subject.name << " of " << t;
  }
}

std::string name_of(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.name;
  if (name.ends_with('\'')) name.replace(name.size() - 1, 1, "_slope");
  return name;
}
INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, testing::ValuesIn(subjects()), name_of);

TEST(AccuracyTable, NamesFunctionsThatAreMeasured) {
  const std::vector<Subject> all = subjects();
  for (const auto& [name, bounds] : table())
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Subject& s) { return s.name == name; })) << name;
}

}  // namespace
}  // namespace gradus::accuracy_test
