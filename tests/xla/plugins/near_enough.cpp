/// bitwise_equal for tests that run on a device of a plugin, in whose place it is loaded (LD_PRELOAD): equal to what
/// another order of sums and fused multiply-adds may change. That two ways to compute have the same bits the processor
/// alone promises.
#include <cmath>
#include "gradus/gradus.h"

namespace gradus {
namespace {

std::vector<double> numbers_of(const Tensor& x) {
  const Tensor here = x.to(cpu(0));
  return cast(here, f64).to_vector<double>();
}

double bound_of(DType t) {
  if (!is_floating(t)) return 0;
  if (t == f64) return 1e-10;
  return t == f32 ? 3e-5 : 2e-2;
}

}  // namespace

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const std::vector<double> left = numbers_of(a), right = numbers_of(b);
  double scale = 1e-3;
  for (const double x : left)
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool is_same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
    if (!is_same && !(std::abs(left[i] - right[i]) <= bound_of(a.dtype()) * scale)) return false;
  }
  return true;
}

}  // namespace gradus
