/// Rows of the random ops: each number against the definition, from the counter on.
#include <cmath>
#include <numbers>
#include "gradus/ops/philox.h"
#include "gradus/ops/random.h"
#include "tests/ops/reference_philox.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_random {
namespace {

constexpr std::uint64_t seed = 42;

double bits(std::int64_t index, std::size_t half) {
  return static_cast<double>(philox_bits(index, key_of(seed), half));
}
double upper_unit(std::int64_t index) { return std::floor(std::ldexp(bits(index, 0), -29)) * 0x1p-24; }
double lower_unit(std::int64_t index) { return std::fmod(bits(index, 0), 0x1p29) * 0x1p-29 + 0x1p-30; }

double box_muller(double u, double v) { return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v); }

/// The x at which the normal distribution's value is p, by bisection.
double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return low;
}
double truncated(double u) { return normal_quantile(0.5 + (u - 0.5) * std::erf(std::numbers::sqrt2)); }

Row drawn(std::string name, std::vector<std::string> covers, DType dtype, std::function<Tensor()> draw,
          std::function<double(std::int64_t)> number) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = [draw](In) { return draw(); }};
  row.shapes = {{}};
  row.dtypes = {dtype};
  row.reference = [number](Arrays) {
    Array out{{25, 40}, {}};
    for (std::int64_t i = 0; i < 1000; ++i) out.values.push_back(number(i));
    return out;
  };
  row.tolerance = 0;
  row.differentiable = false;
  return row;
}

std::vector<Row> draws() {
  const Shape shape{25, 40};
  std::vector<Row> rows{
      drawn(
          "random::uniform f32", {"philox", "half_open_unit"}, f32,
          [=] { return random::uniform(shape, {.seed = seed}); }, upper_unit),
      drawn(
          "random::uniform f64", {"half_open_unit"}, f64,
          [=] { return random::uniform(shape, {.dtype = f64, .seed = seed}); },
          [](std::int64_t i) { return bits(i, 0) * 0x1p-53; }),
      drawn(
          "random::uniform in bounds", {"half_open_unit"}, f32,
          [=] { return random::uniform(shape, {.low = -1, .high = 3, .seed = seed}); },
          [](std::int64_t i) { return 4 * upper_unit(i) - 1; }),
      drawn(
          "random::integers", {"bits_below"}, i32,
          [=] { return random::integers(shape, {.low = -3, .high = 7, .seed = seed}); },
          [](std::int64_t i) { return std::fmod(bits(i, 0), 10) - 3; }),
      drawn(
          "random::normal f32", {"positive_unit"}, f32, [=] { return random::normal(shape, {.seed = seed}); },
          [](std::int64_t i) { return box_muller(lower_unit(i), upper_unit(i)); }),
      drawn(
          "random::normal f64", {"positive_unit"}, f64,
          [=] { return random::normal(shape, {.mean = 1, .stddev = 3, .dtype = f64, .seed = seed}); },
          [](std::int64_t i) { return 1 + 3 * box_muller(bits(i, 0) * 0x1p-53 + 0x1p-54, bits(i, 1) * 0x1p-53); }),
      drawn(
          "random::truncated_normal f32", {"normal_quantile"}, f32,
          [=] { return random::truncated_normal(shape, {.seed = seed}); },
          [](std::int64_t i) { return truncated(lower_unit(i)); }),
      drawn(
          "random::truncated_normal f64", {"normal_quantile"}, f64,
          [=] { return random::truncated_normal(shape, {.dtype = f64, .seed = seed}); },
          [](std::int64_t i) { return truncated(bits(i, 0) * 0x1p-53 + 0x1p-54); }),
  };
  for (Row& row : rows)
    if (row.name.find("normal") != std::string::npos) row.tolerance = 32, row.magnitude = 4;
  return rows;
}

Row bits_row(int half) {
  Row row{.name = half ? "philox, second half" : "philox", .covers = {"philox"}};
  row.apply = [half](In in) { return philox(in[0], in[1], half); };
  row.operands = {{.low = 0, .high = 0x1p40, .dtype = i64}, {.low = 0, .high = 0x1p53, .dtype = i64}};
  row.shapes = {{{1000}, {}}, {{3, 5}, {}}, {{}, {}}, {{0}, {}}};
  row.dtypes = {i64};
  row.reference = [half](Arrays in) {
    Array out{in[0].shape, {}};
    for (double index : in[0].values)
      out.values.push_back(
          static_cast<double>(philox_bits(static_cast<std::int64_t>(index), static_cast<std::int64_t>(in[1].values[0]),
                                          static_cast<std::size_t>(half))));
    return out;
  };
  row.tolerance = 0;
  row.differentiable = false;
  return row;
}

/// Bits of attempt number `number` of the gamma number of this index.
double gamma_bits(std::int64_t index, std::int64_t number, std::size_t half) {
  return static_cast<double>(philox_bits(index, philox_bits(number, key_of(seed), 0), half));
}
double gamma_unit(std::int64_t index, std::int64_t number) { return gamma_bits(index, number, 0) * 0x1p-53 + 0x1p-54; }

/// Marsaglia and Tsang: "A simple method for generating gamma variables", 2000.
double gamma_number(double alpha, std::int64_t index) {
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  for (std::int64_t number = 0;; ++number) {
    const double x = box_muller(gamma_unit(index, 2 * number), gamma_bits(index, 2 * number, 1) * 0x1p-53);
    const double v = std::pow(1 + x / std::sqrt(9 * d), 3);
    if (v <= 0 || std::log(gamma_unit(index, 2 * number + 1)) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    return d * v * (alpha < 1 ? std::pow(gamma_unit(index, 1 << 20), 1 / alpha) : 1);
  }
}

Row gamma_row() {
  Row row{.name = "random::gamma", .covers = {"drawn_log_gamma"}};
  row.apply = [](In in) { return random::gamma({}, in[0], {.seed = seed}); };
  row.operands = {{.low = 0.2, .high = 6}};
  row.shapes = {{{40}}, {{3, 5}}, {{}}, {{0}}};
  row.reference = [](Arrays in) {
    Array out{in[0].shape, {}};
    for (std::size_t i = 0; i < in[0].values.size(); ++i)
      out.values.push_back(gamma_number(in[0].values[i], static_cast<std::int64_t>(i)));
    return out;
  };
  row.tolerance = 64;
  row.smooth = false;  // the gradient is implicit, no limit of differences
  row.called = "random::gamma";
  return row;
}

const bool registered = add_rows({gamma_row()}) && add_rows(draws()) && add_rows({bits_row(0), bits_row(1)});

}  // namespace
}  // namespace gradus::rows::rows_random
