/// The precision of products as those see it who compute them.
#pragma once
#include "gradus/backend/matmul_precision.h"

namespace gradus {

/// The default, which cannot be changed any more.
MatmulPrecision use_default_matmul_precision();

/// Another default while it lives, whether or not one has been in use: for tests.
class MatmulPrecisionScope {
 public:
  explicit MatmulPrecisionScope(MatmulPrecision);
  ~MatmulPrecisionScope();
  MatmulPrecisionScope(const MatmulPrecisionScope&) = delete;
  MatmulPrecisionScope& operator=(const MatmulPrecisionScope&) = delete;

 private:
  MatmulPrecision before_;
};

}  // namespace gradus
