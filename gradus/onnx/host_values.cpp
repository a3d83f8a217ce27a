#include "gradus/onnx/host_values.h"
#include <algorithm>
#include "gradus/graph/context.h"
#include "gradus/onnx/symbolic_values.h"
#include "gradus/ops/elementwise.h"

namespace gradus::onnx {
namespace {

constexpr std::int64_t most_values = std::int64_t{1} << 20;

void expect_few(const Tensor& x, std::string_view what) {
  require<DataError>(x.shape().size() <= most_values, what, " has ", x.shape().size(), " elements, at most ",
                     most_values, " can decide about shapes");
}

[[noreturn]] void fail_unknown(std::string_view what) {
  throw DataError(
      text(what,
           " decides about shapes, so within a trace it must follow from constants, initializers or shapes; "
           "it depends on the arguments of the function"));
}

/// Values known within a trace too: numbers, or extents of symbolic tensors.
std::vector<Extent> extents_of(const Tensor& x, std::string_view what) {
  const std::optional<std::vector<Extent>> values = symbolic_values(x);
  if (!values) fail_unknown(what);
  return *values;
}

}  // namespace

std::vector<std::int64_t> host_integers(const Tensor& x, std::string_view what) {
  require<DataError>(!is_floating(x.dtype()), what, " must hold integers, it is ", x.spec());
  std::vector<std::int64_t> values;
  if (x.is_symbolic()) {
    for (const Extent& each : extents_of(x, what)) {
      require<DataError>(!each.symbolic, what, " must be known, but it follows from a size that is not");
      values.push_back(each.value);
    }
    return values;
  }
  expect_few(x, what);
  const Untraced outside;
  return cast(x, i64).to_vector<std::int64_t>();
}

std::vector<double> host_numbers(const Tensor& x, std::string_view what) {
  if (x.is_symbolic() && !is_floating(x.dtype())) {
    const std::vector<std::int64_t> integers = host_integers(x, what);
    return {integers.begin(), integers.end()};
  }
  if (x.is_symbolic()) fail_unknown(what);
  expect_few(x, what);
  const Untraced outside;
  return cast(x, f64).to_vector<double>();
}

Shape host_shape(const Tensor& x, std::string_view what) {
  require<DataError>(x.shape().rank() <= 1, what, " must be a list of extents, it is ", x.spec());
  require<DataError>(x.shape().is_symbolic() || x.shape().size() <= Shape::max_rank, what, " has ", x.shape().size(),
                     " extents, at most ", Shape::max_rank, " are supported");
  Shape shape;
  if (x.is_symbolic()) {
    require<DataError>(!is_floating(x.dtype()), what, " must hold integers, it is ", x.spec());
    for (const Extent& each : extents_of(x, what)) {
      require<DataError>(each.symbolic || each.value >= any_size, what, " has an extent of ", each.value);
      shape.push_back(each.value);
    }
    return shape;
  }
  for (const std::int64_t extent : host_integers(x, what)) {
    require<DataError>(extent >= any_size, what, " has an extent of ", extent);
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace gradus::onnx
