/// The setting, and whether something has been computed with it.
#include "gradus/backend/matmul_precision.h"
#include <mutex>
#include <utility>
#include "gradus/backend/matmul_precision_use.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

std::mutex mutex;
MatmulPrecision precision = MatmulPrecision::float32;
bool in_use = false;

MatmulPrecision exchange(MatmulPrecision wanted) {
  const std::lock_guard lock(mutex);
  return std::exchange(precision, wanted);
}

}  // namespace

void set_default_matmul_precision(MatmulPrecision wanted) {
  const std::lock_guard lock(mutex);
  require<InvalidArgument>(!in_use || wanted == precision,
                           "set_default_matmul_precision: matrix products have been computed with another precision; "
                           "set it before the first one");
  precision = wanted;
}

MatmulPrecision default_matmul_precision() {
  const std::lock_guard lock(mutex);
  return precision;
}

MatmulPrecision use_default_matmul_precision() {
  const std::lock_guard lock(mutex);
  in_use = true;
  return precision;
}

MatmulPrecisionScope::MatmulPrecisionScope(MatmulPrecision wanted) : before_(exchange(wanted)) {}
MatmulPrecisionScope::~MatmulPrecisionScope() { exchange(before_); }

}  // namespace gradus
