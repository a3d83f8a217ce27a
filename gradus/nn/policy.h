/// Policy: the dtypes in which layers compute and keep their variables.
#pragma once
#include "gradus/function/loss_scale.h"
#include "gradus/tensor/dtype.h"

namespace gradus {

/// Dtypes of a layer, and its loss scale.
class Policy {
 public:
  DType compute = f32, variable = f32;  // dtype of computing, dtype of variables
  bool scale_loss = false;              // the variables have a loss scale: see LossScale
  LossScaleOptions loss_scale = {};     // its options; {.initial = 1024, .dynamic = false} is a fixed one
  bool operator==(const Policy&) const = default;
};
/// Keras's policies of these names.
inline constexpr Policy float32{}, mixed_float16{f16, f32, true}, mixed_bfloat16{bf16, f32, false};

}  // namespace gradus
