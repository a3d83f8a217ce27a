/// Fourier transforms of rows: fourier. Threads divide rows. Decision 387 has the reasons.
#include "gradus/backend/cpu/kernels/fourier.h"
#include <cmath>
#include <numbers>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/signal_parts.h"

namespace gradus::library {
namespace fourier {
void for_each_vector(const Transform& transform, const auto& visit) {
  visit(transform.stages);
  visit(transform.narrow);
  visit(transform.wide);
}
}  // namespace fourier

namespace {

using fourier::Stage;
using fourier::Transform;

struct Call {
  DType dtype;
  Transform transform;
  int source, target;  // slots
};
void for_each_vector(const Call& call, const auto& visit) { for_each_vector(call.transform, visit); }

/// The factors of n in the order of their stages: an 8 first, after which strides fill vectors.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> radices;
  const auto take = [&](std::int64_t radix) {
    radices.push_back(radix);
    n /= radix;
  };
  int twos = 0;
  for (std::int64_t rest = n; rest % 2 == 0; rest /= 2) ++twos;
  if (twos >= 3) take(8), twos -= 3;
  if (twos >= 3 && twos % 2 == 1) take(8), twos -= 3;
  for (; twos >= 2; twos -= 2) take(4);
  if (twos == 1) take(2);
  for (std::int64_t radix = 3, left = n; left > 1; radix += 2)
    for (; left % radix == 0; left /= radix) take(radix);
  return radices;
}

/// exp(-2 pi i k / n), by an exact angle within one turn.
class Table {
 public:
  explicit Table(Transform& transform, DType t) : transform_(transform), t_(t) {}
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  void add_parts(std::int64_t count, std::int64_t step, std::int64_t n) {
    const auto angle = [&](std::int64_t k) {
      return 2 * std::numbers::pi * static_cast<double>(k * step % n) / static_cast<double>(n);
    };
    for (std::int64_t k = 0; k < count; ++k) values_.push_back(std::cos(angle(k)));
    for (std::int64_t k = 0; k < count; ++k) values_.push_back(-std::sin(angle(k)));
  }
  void finish() {
    if (t_ == f64) transform_.wide = std::move(values_);
    else transform_.narrow.assign(values_.begin(), values_.end());
  }

 private:
  Transform& transform_;
  const DType t_;
  std::vector<double> values_;
};

bool has_formulas(std::int64_t radix) { return radix <= 5 || radix == 8; }

void add_stages(Transform& transform, Table& table) {
  std::int64_t stride = 1, left = transform.points;
  for (const std::int64_t radix : radices_of(transform.points)) {
    Stage stage{radix, left / radix, stride, table.size(), -1};
    for (std::int64_t k = 1; k < radix; ++k) table.add_parts(stage.rest, k, left);
    if (!has_formulas(radix)) {
      stage.roots = table.size();
      table.add_parts(radix, 1, radix);
    }
    transform.stages.push_back(stage);
    left = stage.rest;
    stride *= radix;
  }
}

Transform transform_of(const Fourier& op, const Shape& x, const Shape& y, DType t) {
  const HostFloats floats;
  const std::int64_t n = x[-2];
  Transform transform{
      .points = n, .given = n * x[-1], .made = y[-2] * 2, .inverse = op.inverse, .is_real = op.onesided};
  transform.is_packed = op.onesided && n % 2 == 0;
  if (transform.is_packed) transform.points = n / 2;
  Table table(transform, t);
  add_stages(transform, table);
  transform.real_turns = table.size();
  if (transform.is_packed) table.add_parts(transform.points, 1, n);
  table.finish();
  return transform;
}

}  // namespace

BoundThunk bind_fourier(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Shape x = graph[v.in[0]].spec.shape.evaluated(symbols), y = v.spec.shape.evaluated(symbols);
  auto call = std::make_shared<Call>(
      Call{v.spec.dtype, transform_of(*v.op.as<Fourier>(), x, y, v.spec.dtype), storage_of(graph, v.in[0]), value});
  const std::int64_t points = call->transform.points, rows = x.size() / call->transform.given;
  BoundThunk bound{.extent = rows, .grain = 1};
  bound.bytes = (x.size() + y.size()) * size_of(v.spec.dtype);
  std::int64_t radices = 0;
  for (const Stage& stage : call->transform.stages) radices += stage.radix;
  bound.flops = 8 * rows * points * radices;
  bound.worker_scratch = 4 * (points + fourier::apart) * size_of(v.spec.dtype);
  bound.data = std::move(call);
  bound.image = image_of<Call>;
  return bound;
}

void run_fourier(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const auto run = [&]<class T>(T) {
    const T* const x = static_cast<const T*>(arguments->slots[call.source]) + begin * call.transform.given;
    T* const y = static_cast<T*>(arguments->slots[call.target]) + begin * call.transform.made;
    fourier::transform_rows<T>()(call.transform, x, y, static_cast<T*>(arguments->scratch), end - begin);
  };
  if (call.dtype == f64) run(double());
  else run(float());
}

}  // namespace gradus::library
