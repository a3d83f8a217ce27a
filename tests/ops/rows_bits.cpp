/// Rows of logic and shifts of integers.
#include <bit>
#include <cmath>
#include "gradus/ops/bits.h"
#include "gradus/ops/constant.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_bits {
namespace {

Row of_integers(Row row) {
  row.shapes = row.operands.size() == 1
                   ? std::vector<std::vector<Shape>>{{Shape{}}, {Shape{70}}, {Shape{0}}}
                   : std::vector<std::vector<Shape>>{{{3, 1}, {1, 4}}, {{0, 3}, {3}}, {{70}, {70}}};
  row.dtypes = {i64, i32, u8};
  row.refuses = {f32, f64, boolean};
  return row;
}

std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

std::vector<Row> bits() {
  return {
      of_integers(elementwise(
          "bitwise_and", [](In in) { return bitwise_and(in[0], in[1]); }, {{-99, 99}, {-99, 99}},
          [](Scalars x) { return static_cast<double>(whole(x[0]) & whole(x[1])); })),
      of_integers(elementwise(
          "bitwise_or", [](In in) { return bitwise_or(in[0], in[1]); }, {{-99, 99}, {-99, 99}},
          [](Scalars x) { return static_cast<double>(whole(x[0]) | whole(x[1])); })),
      of_integers(elementwise(
          "bitwise_xor", [](In in) { return bitwise_xor(in[0], in[1]); }, {{-99, 99}, {-99, 99}},
          [](Scalars x) { return static_cast<double>(whole(x[0]) ^ whole(x[1])); })),
      // The oracle knows widths.
      of_integers(elementwise(
          "invert", [](In in) { return invert(in[0]); }, {{-99, 99}}, nullptr)),
      of_integers(elementwise(
          "left_shift", [](In in) { return left_shift(in[0], in[1]); }, {{-99, 99}, {-2, 70}}, nullptr)),
      of_integers(elementwise(
          "right_shift", [](In in) { return right_shift(in[0], in[1]); }, {{-99, 99}, {-2, 70}}, nullptr)),
      of_integers(elementwise(
          "population_count", [](In in) { return population_count(in[0]); }, {{-99, 99}}, nullptr)),
  };
}

const bool registered = add_rows(bits());

}  // namespace
}  // namespace gradus::rows::rows_bits
