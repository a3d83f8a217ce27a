#include "gradus/text/category_modes.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/nearest.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr OutputMode all_modes[] = {OutputMode::ids, OutputMode::one_hot, OutputMode::multi_hot, OutputMode::count,
                                    OutputMode::tf_idf};

template <class T> struct HostArray {
  HostArray(DType dtype, const Shape& shape) : spec{dtype, shape}, buffer(Buffer::allocate(bytes_of(spec), "ids")) {
    std::fill_n(values(), shape.size(), T{0});
  }
  T* values() { return buffer->template data<T>(); }
  Tensor take() { return Tensor::of_buffer(spec, std::move(buffer)); }
  Spec spec;
  Ref<Buffer> buffer;
};

}  // namespace

OutputMode output_mode_of(std::string_view name, std::string_view source) {
  std::vector<std::string> names;
  for (const OutputMode mode : all_modes) {
    if (name == name_of(mode)) return mode;
    names.emplace_back(name_of(mode));
  }
  throw DataError(text(source, ": unknown output_mode `", name, "`; expected int, one_hot, multi_hot, count or tf_idf",
                       did_you_mean(std::string(name), names)));
}

Tensor detail::in_mode(const Tensor& ids, OutputMode mode, std::int64_t depth) {
  if (mode == OutputMode::ids) return ids;
  const int rank = ids.shape().rank();
  const Tensor flat = mode == OutputMode::one_hot && rank > 1 && ids.shape()[-1] == 1 ? squeeze(ids, {-1}) : ids;
  const Tensor rows = one_hot(flat, depth);
  if (mode == OutputMode::one_hot || rank == 0) return rows;
  const Tensor counts = reduce_sum(rows, {.axis = {-2}});
  return mode == OutputMode::multi_hot ? minimum(counts, 1) : counts;
}

Tensor detail::padded_ids(const IdRows& ids, std::optional<std::int64_t> length) {
  std::size_t width = 0;
  for (const auto& row : ids.rows) width = std::max(width, row.size());
  if (length) width = static_cast<std::size_t>(*length);
  Shape shape = ids.outer;
  shape.push_back(static_cast<std::int64_t>(width));
  HostArray<std::int64_t> array(i64, shape);
  std::int64_t* out = array.values();
  for (const auto& row : ids.rows) {
    std::copy_n(row.begin(), std::min(row.size(), width), out);
    out += width;
  }
  return array.take();
}

Tensor detail::in_mode(const IdRows& ids, OutputMode mode, std::int64_t depth, const std::vector<float>& weights) {
  Shape shape = ids.outer;
  shape.push_back(depth);
  HostArray<float> array(f32, shape);
  float* out = array.values();
  for (const auto& row : ids.rows) {
    for (const std::int64_t id : row)
      if (id >= 0 && id < depth)
        out[id] = mode == OutputMode::multi_hot || mode == OutputMode::one_hot ? 1 : out[id] + 1;
    for (std::size_t i = 0;
         mode == OutputMode::tf_idf && i < std::min<std::size_t>(weights.size(), static_cast<std::size_t>(depth)); ++i)
      out[i] *= weights[i];
    out += depth;
  }
  return array.take();
}

}  // namespace gradus
