/// What is wrong with an op's arguments is said when the op is applied, in words that name what was given.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/ops/concat.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus::mistakes_test {
namespace {

struct Mistake {
  const char* name;
  std::function<void()> make;
  const char* says;  // a part of the message
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

const Tensor& matrix() {
  static const Tensor x = zeros({2, 3});
  return x;
}
Tensor ints(const Shape& shape) { return zeros(shape, i32); }

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreErrorsThatSayWhatWasGiven) {
  try {
    GetParam().make();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().says), std::string::npos) << error.what();
    return;
  }
  FAIL() << "no error";
}

const Mistake shape_mistakes[] = {
    {"reshape_count", [] { reshape(matrix(), {4}); }, "f32[2,3] has 6 elements, shape (4) has 4"},
    {"reshape_open", [] { reshape(matrix(), {-1, 4}); }, "no multiple of 4"},
    {"reshape_none_open", [] { reshape(zeros({0, 3}), {-1, 0}); }, "could be of any size"},
    {"reshape_none_open_last", [] { reshape(zeros({0, 3}), {0, -1}); }, "write the size"},
    {"reshape_zero_open", [] { reshape(matrix(), {0, -1}); }, "0 is a size; a dimension that is to stay is x.shape()"},
    {"reshape_two_open", [] { reshape(matrix(), {-1, -1}); }, "only one can be worked out"},
    {"reshape_negative", [] { reshape(matrix(), {-3, 2}); }, "not negative, got -3"},
    {"reshape_past_limit", [] { reshape(matrix(), {std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "2^63"},
    {"squeeze", [] { squeeze(matrix(), {1}); }, "dimension 1 of f32[2,3] is 3"},
    {"squeeze_axis", [] { squeeze(matrix(), {2}); }, "axis 2 is out of range"},
    {"expand_dims", [] { expand_dims(matrix(), 4); }, "axis 4 is out of range for f32[2,3]: expected -3 to 2"},
    {"broadcast", [] { broadcast_to(matrix(), {2, 4}); }, "(2, 3) and (2, 4) do not broadcast"},
    {"broadcast_smaller", [] { broadcast_to(matrix(), {3}); }, "f32[2,3] does not broadcast to (3)"},
    {"broadcast_open", [] { broadcast_to(matrix(), {any_size, 3}); }, "got -1"},
    {"transpose_rank", [] { transpose(zeros({3})); }, "at least two dimensions, got f32[3]"},
    {"transpose_length", [] { transpose(matrix(), {0}); }, "an order of 1 axes for f32[2,3]"},
    {"transpose_twice", [] { transpose(matrix(), {0, -2}); }, "names axis 0 of f32[2,3] twice"},
    {"slice_past", [] { slice(matrix(), {0, 2}, {2, 2}); }, "[2, 4) is outside dimension 1 of f32[2,3]"},
    {"slice_begin", [] { slice(matrix(), {0, -1}, {2, 1}); }, "not negative, got -1"},
    {"slice_begin_past", [] { slice(matrix(), {0, 4}, {2, -1}); }, "outside dimension 1"},
    {"slice_size", [] { slice(matrix(), {0, 0}, {2, -2}); }, "not negative, got -2"},
    {"slice_rank", [] { slice(matrix(), {0}, {2}); }, "expected 2 each for f32[2,3]"},
    {"tile_rank", [] { tile(matrix(), {2}); }, "1 multiples for f32[2,3]"},
    {"tile_negative", [] { tile(matrix(), {2, -1}); }, "-1 of dimension 1 is negative"},
    {"concat_none", [] { concat({}); }, "expected at least one tensor"},
    {"concat_scalar", [] { concat({zeros({}), zeros({})}); }, "use stack"},
    {"concat_shape", [] { concat({matrix(), zeros({2, 4})}, 0); }, "part 1 is f32[2,4]"},
    {"concat_rank", [] { concat({matrix(), zeros({3})}, 0); }, "ranks differ"},
    {"concat_dtype", [] { concat({matrix(), ints({2, 3})}, 0); }, "cast one of them"},
    {"concat_axis", [] { concat({matrix(), matrix()}, 2); }, "axis 2 is out of range"},
    {"stack", [] { stack({matrix(), zeros({3, 2})}); }, "part 1 is f32[3,2]"},
    {"split", [] { split(matrix(), 2, 1); }, "dimension 1 of f32[2,3] is 3, which is no multiple of 2"},
    {"split_parts", [] { split(matrix(), 0, 1); }, "0 parts"},
    {"reverse_twice", [] { reverse(matrix(), {1, -1}); }, "axis -1 of f32[2,3] is named twice"},
    {"pad_rank", [] { pad(matrix(), {{1, 1}}); }, "1 pairs of paddings for f32[2,3]"},
    {"pad_negative", [] { pad(matrix(), {{1, 1}, {0, -1}}); }, "must not be negative"},
    {"flip", [] { flip_left_right(matrix()); }, "[..., height, width, channels], got f32[2,3]"},
    {"meshgrid", [] { meshgrid({matrix()}); }, "axis 0 is f32[2,3], expected a vector"},
    {"index_past", [] { matrix()[2]; }, "x[2]: outside dimension 0 of f32[2,3]"},
    {"index_before", [] { matrix()[-3]; }, "x[-3]: outside"},
    {"index_scalar", [] { zeros({})[0]; }, "no dimension to index"},
    {"rows_past", [] { matrix().rows(1, 3); }, "[1, 3) is outside dimension 0 of f32[2,3]"},
    {"rows_backwards", [] { matrix().rows(2, 1); }, "no range of rows"},
    {"rank", [] { reshape(matrix(), {1, 1, 1, 1, 1, 1, 1, 2, 3}); }, "at most 8 dimensions"},
};
INSTANTIATE_TEST_SUITE_P(Shape, Mistakes, testing::ValuesIn(shape_mistakes),
                         [](const auto& info) { return std::string(info.param.name); });

const Mistake reduce_mistakes[] = {
    {"axis", [] { reduce_sum(matrix(), {.axis = {2}}); }, "axis 2 is out of range"},
    {"twice", [] { reduce_max(matrix(), {.axis = {1, -1}}); }, "axis -1 of f32[2,3] is named twice"},
    {"mean_of_integers", [] { reduce_mean(ints({2})); }, "got i32[2]; cast(x, f32) first"},
    {"variance_of_integers", [] { reduce_variance(ints({2})); }, "cast"},
    {"norm_of_integers", [] { norm(ints({2})); }, "cast"},
    {"sum_of_booleans", [] { reduce_sum(zeros({2}, boolean)); }, "expected a number type, got bool[2]"},
    {"any_of_numbers", [] { reduce_any(matrix()); }, "expected bool, got f32"},
    {"cumsum_scalar", [] { cumsum(zeros({})); }, "has no axis"},
    {"argmax_empty", [] { argmax(zeros({2, 0})); }, "axis 1 of f32[2,0] has no element"},
    {"argmax_scalar", [] { argmax(zeros({})); }, "has no axis"},
    {"softmax_integers", [] { softmax(ints({2})); }, "got i32[2]; cast(x, f32) first"},
    {"softmax_axis", [] { log_softmax(matrix(), 2); }, "axis 2 is out of range"},
};
INSTANTIATE_TEST_SUITE_P(Reduce, Mistakes, testing::ValuesIn(reduce_mistakes),
                         [](const auto& info) { return std::string(info.param.name); });

const Mistake product_mistakes[] = {
    {"inner", [] { matmul(zeros({64, 784}), zeros({10, 128})); },
     "matmul: inner dimensions differ: a is f32[64,784], b is f32[10,128] (784 vs 10)"},
    {"inner_hint_b", [] { matmul(zeros({64, 784}), zeros({10, 784})); }, "did you mean matmul(a, transpose(b))?"},
    {"inner_hint_a", [] { matmul(zeros({784, 64}), zeros({784, 10})); }, "did you mean matmul(transpose(a), b)?"},
    {"vector", [] { matmul(zeros({3}), zeros({3, 4})); }, "a is f32[3], expected a matrix"},
    {"dtypes", [] { matmul(zeros({2, 3}), zeros({3, 4}, f64)); }, "b is f64[3,4]: their dtypes differ; cast"},
    {"bytes", [] { matmul(zeros({2, 3}, u8), zeros({3, 4}, u8)); },
     "expected a floating type or an integer type of 32 or 64 bits; cast it"},
    {"batches", [] { matmul(zeros({2, 3, 4}), zeros({5, 4, 6})); }, "(2) and (5) do not broadcast"},
    {"einsum_count", [] { einsum("ij,jk->ik", {matrix()}); }, "names 2 operands, got 1"},
    {"einsum_rank", [] { einsum("ijk->i", {matrix()}); }, "names 3 dimensions of operand 0, which is f32[2,3]"},
    {"einsum_letter", [] { einsum("i1->i", {matrix()}); }, "`1` in \"i1->i\" is no letter"},
    {"einsum_size", [] { einsum("ij,jk->ik", {matrix(), matrix()}); }, "`j` is 3 in one operand and 2 in another"},
    {"einsum_output", [] { einsum("ij->ik", {matrix()}); }, "`k` in the result of \"ij->ik\" stands in no operand"},
    {"einsum_twice", [] { einsum("ij->ii", {matrix()}); }, "`i` stands twice in the result"},
    {"einsum_dots", [] { einsum("......i->i", {matrix()}); }, "`...` twice"},
};
INSTANTIATE_TEST_SUITE_P(Product, Mistakes, testing::ValuesIn(product_mistakes),
                         [](const auto& info) { return std::string(info.param.name); });

/// An op whose attributes come from a text, as in a graph that is parsed.
void parsed(std::string_view name, std::string_view attributes, const Tensors& in) {
  make_node(parse_op(name, attributes), in);
}
const Mistake parsed_mistakes[] = {
    {"concat_axis", [] { parsed("concat", "axis=-2147483648", {matrix()}); }, "axis -2147483648 is out of range"},
    {"sum_axis", [] { parsed("sum", "axis=-2147483648", {matrix()}); }, "axis -2147483648 is out of range"},
    {"sum_positive_axis", [] { parsed("sum", "axis=0", {matrix()}); }, "axis 0 is out of range"},
    {"slice_begin", [] { parsed("slice", "begin=[0,?]; size=[1,1]", {matrix()}); }, "unknown dimension"},
    {"slice_end", [] { parsed("slice", "begin=[0,2]; size=[1,2]", {matrix()}); }, "[2, 4) of dimension 1"},
    {"slice_overflow", [] { parsed("slice", "begin=[0,9223372036854775807]; size=[1,2]", {matrix()}); }, "2^63"},
    {"reshape_open", [] { parsed("reshape", "shape=[?,2]", {matrix()}); }, "unknown dimension"},
    {"broadcast_open", [] { parsed("broadcast", "shape=[?,3]", {matrix()}); }, "unknown dimension"},
    {"transpose_symbol", [] { parsed("transpose", "order=[s0,0]", {matrix()}); }, "not an order of 2 dimensions"},
    {"transpose_twice", [] { parsed("transpose", "order=[0,0]", {matrix()}); }, "not an order of 2 dimensions"},
    {"reverse_bits", [] { parsed("reverse", "dimensions=4", {matrix()}); }, "do not fit f32[2,3]"},
    {"operands", [] { parsed("matmul", "transpose_a=false; transpose_b=false", {matrix()}); }, "expected 2 operands"},
    {"iota_open", [] { parsed("iota", "shape=[?]; dtype=i64", {}); }, "expected a known shape"},
    {"extent_negative", [] { parsed("extent", "dimension=-5; dtype=f32", {}); }, "known dimension"},
    {"check_limit", [] { parsed("check_range", "limit=-5; labels=true", {ints({2})}); }, "check_range"},
    {"check_indices_limit", [] { parsed("check_indices", "limit=-5", {ints({2})}); }, "known limit"},
    {"check_indices_type", [] { parsed("check_indices", "limit=5", {matrix()}); }, "check_indices"},
    {"indexed_rows_shape", [] { parsed("indexed_rows", "shape=[2,4]", {matrix(), ints({2})}); }, "are not [2,4]"},
    {"gather_axis", [] { parsed("gather", "axis=-2147483648", {matrix(), ints({2})}); }, "out of range"},
    {"scatter_axis", [] { parsed("scatter_add", "axis=-2147483648; extent=5", {ints({2}), matrix()}); },
     "out of range"},
    {"igamma_order", [] { parsed("igamma", "order=6; upper=false", {matrix(), matrix()}); }, "orders of derivatives"},
    {"betainc_order", [] { parsed("betainc", "order_a=0; order_b=-1", {matrix(), matrix(), matrix()}); },
     "orders of derivatives"},
    {"scatter_rank", [] { parsed("scatter_add", "axis=-3; extent=5", {ints({2}), matrix()}); }, "out of range"},
    {"scatter_updates", [] { parsed("scatter_add", "axis=-1; extent=5", {ints({2}), matrix()}); }, "do not fit"},
    {"cumsum_axis", [] { parsed("cumsum", "axis=-3; exclusive=false; reverse=false", {matrix()}); }, "out of range"},
};
INSTANTIATE_TEST_SUITE_P(Parsed, Mistakes, testing::ValuesIn(parsed_mistakes),
                         [](const auto& info) { return std::string(info.param.name); });

const Mistake index_mistakes[] = {
    {"range_negative", [] { range(-2); }, "-2 is no number of elements"},
    {"range_bytes", [] { range(257, u8); }, "u8 does not hold numbers to 256; use i32"},
    {"range_bool", [] { range(2, boolean); }, "got bool"},
    {"linspace_dtype", [] { linspace(0, 1, 5, i32); }, "expected a floating type, got i32"},
    {"linspace_none", [] { linspace(0, 1, 0); }, "at least one"},
    {"eye", [] { eye(-1); }, "-1 is no number of rows"},
    {"one_hot_float", [] { one_hot(matrix(), 3); }, "indices are f32[2,3], expected an integer type"},
    {"gather_float", [] { gather(matrix(), matrix()); }, "indices are f32[2,3], expected an integer type"},
    {"gather_axis", [] { gather(matrix(), ints({1}), 2); }, "axis 2 is out of range"},
    {"gather_scalar", [] { gather(zeros({}), ints({1})); }, "has no axis"},
    {"gather_nd_depth", [] { gather_nd(matrix(), ints({4, 3})); }, "positions of 3 numbers for x f32[2,3]"},
    {"uniform_bounds", [] { random::uniform({2}, {.low = 1, .high = 1}); }, "expected low < high, got 1 and 1"},
    {"normal_dtype", [] { random::normal({2}, {.dtype = i32}); }, "random::integers gives integers"},
    {"random_shape", [] { random::uniform({any_size}); }, "expected a known shape, got (?)"},
    {"integers_dtype", [] { random::integers({2}, {.dtype = f32}); }, "expected an integer type, got f32"},
    {"integers_bounds", [] { random::integers({2}, {.low = 3, .high = 3}); }, "expected low < high"},
    {"integers_fit", [] { random::integers({2}, {.low = 0, .high = 257, .dtype = u8}); }, "u8 does not hold all of"},
};
INSTANTIATE_TEST_SUITE_P(Index, Mistakes, testing::ValuesIn(index_mistakes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradus::mistakes_test
