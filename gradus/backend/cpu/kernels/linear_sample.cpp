/// Bilinear samples of images: places are divided, those of one image follow each other. Decision 394 has the reasons.
#include "gradus/backend/cpu/kernels/linear_sample.h"
#include <algorithm>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/sample_ops.h"

namespace gradus::library {
namespace {

struct Sampling {
  DType dtype;
  bool zeros;
  std::int64_t height, width, channels, places;
  int image, rows, columns, target;
};

template <class T>
void sample(const Sampling& op, const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const T* const images = static_cast<const T*>(arguments->slots[op.image]);
  const T* const rows = static_cast<const T*>(arguments->slots[op.rows]);
  const T* const columns = static_cast<const T*>(arguments->slots[op.columns]);
  T* const target = static_cast<T*>(arguments->slots[op.target]);
  while (begin < end) {
    const std::int64_t image = begin / op.places, count = std::min(end, (image + 1) * op.places) - begin;
    sample_places<T>({images + image * op.height * op.width * op.channels, op.height, op.width, op.channels, op.zeros},
                     rows + begin, columns + begin, count, target + begin * op.channels);
    begin += count;
  }
}

}  // namespace

BoundThunk bind_linear_sample(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = v.spec.shape.evaluated(symbols);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  require(x[1] < most && x[2] < most, "linear_sample: an image of ", x, " has more rows or columns than i32 counts");
  BoundThunk bound{.extent = y[2] == 0 ? 0 : y[0] * y[1], .grain = 64};
  bound.bytes = (y[0] * y[1] * (2 + 2 * y[2])) * size_of(v.spec.dtype);
  bound.flops = y[0] * y[1] * (24 + 8 * y[2]);
  bound.data = std::make_shared<Sampling>(Sampling{v.spec.dtype, v.op.as<LinearSample>()->zeros, x[1], x[2], x[3], y[1],
                                                   storage_of(graph, v.in[0]), storage_of(graph, v.in[1]),
                                                   storage_of(graph, v.in[2]), value});
  bound.image = image_of<Sampling>;
  return bound;
}

void run_linear_sample(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& op = *static_cast<const Sampling*>(arguments->data);
  if (op.dtype == f64) sample<double>(op, arguments, begin, end);
  else sample<float>(op, arguments, begin, end);
}

}  // namespace gradus::library
