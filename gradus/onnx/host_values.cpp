#include "gradus/onnx/host_values.h"
#include "gradus/ops/elementwise.h"

namespace gradus::onnx {
namespace {

constexpr std::int64_t most_values = std::int64_t{1} << 20;

void expect_known(const Tensor& x, std::string_view what) {
  require<DataError>(!x.is_symbolic(), what,
                     " decides about shapes, so within a trace it must follow from constants, initializers or known "
                     "shapes; it depends on the arguments of the function");
  require<DataError>(x.shape().size() <= most_values, what, " has ", x.shape().size(), " elements, at most ",
                     most_values, " can decide about shapes");
}

}  // namespace

std::vector<std::int64_t> host_integers(const Tensor& x, std::string_view what) {
  require<DataError>(!is_floating(x.dtype()), what, " must hold integers, it is ", x.spec());
  expect_known(x, what);
  return cast(x, i64).to_vector<std::int64_t>();
}

std::vector<double> host_numbers(const Tensor& x, std::string_view what) {
  expect_known(x, what);
  return cast(x, f64).to_vector<double>();
}

Shape host_shape(const Tensor& x, std::string_view what) {
  require<DataError>(x.shape().rank() <= 1, what, " must be a list of extents, it is ", x.spec());
  const std::vector<std::int64_t> values = host_integers(x, what);
  require<DataError>(values.size() <= Shape::max_rank, what, " has ", values.size(), " extents, at most ",
                     Shape::max_rank, " are supported");
  return Shape(std::span(values));
}

}  // namespace gradus::onnx
