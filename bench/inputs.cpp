#include "bench/inputs.h"
#include <algorithm>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/formats/npz.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"

namespace gradus::bench {
namespace {

/// The array of this name; empty if nothing is given. Whoever takes it is the only one to hold it: a Variable then
/// updates it in place.
Tensor given(const std::string& name) {
  static NamedTensors arrays = inputs_file.empty() ? NamedTensors() : load_npz(inputs_file);
  const auto found = std::ranges::find(arrays, name, &NamedTensors::value_type::first);
  return found == arrays.end() ? Tensor() : std::exchange(found->second, Tensor());
}

Tensor given_or(const std::string& name, DType dtype, const Shape& shape, const Tensor& otherwise) {
  const Tensor array = given(name);
  if (!array.defined()) return otherwise;
  require(array.shape() == shape, inputs_file.string(), ": ", name, " is ", array.shape(), ", expected ", shape);
  return cast(array, dtype);
}

}  // namespace

Batch batch_of(const Shape& images) {
  const std::int64_t rows = images[0];
  return {given_or("x", f32, images, random::uniform(images, {.seed = 0})),
          given_or("y", i32, {rows}, random::integers({rows}, {.high = 10, .seed = 1}))};
}

Batch text_of(std::int64_t rows, std::int64_t places, std::int64_t vocabulary) {
  const Shape shape{rows, places + 1};
  const Tensor text = given_or("text", i32, shape, random::integers(shape, {.high = vocabulary, .seed = 0}));
  return {slice(text, {0, 0}, {rows, places}), slice(text, {0, 1}, {rows, places})};
}

bool assign_given(const Variables& variables) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Tensor value = given("w" + std::to_string(i));
    if (i == 0 && !value.defined()) return false;
    require(value.defined() && value.shape().size() == variables[i].shape().size(), inputs_file.string(), ": w", i,
            " does not fit variable ", variables[i].name(), " ", variables[i].shape());
    variables[i].assign(reshape(value, variables[i].shape()));
  }
  return true;
}

}  // namespace gradus::bench
