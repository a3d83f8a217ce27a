/// Policy: the types in which layers compute and keep their variables.
#pragma once
#include "gradus/function/loss_scale.h"
#include "gradus/tensor/dtype.h"

namespace gradus {

class Policy {
 public:
  DType compute = f32, variable = f32;
  bool scale_loss = false;           // the scale belongs to the variables: see LossScale
  LossScaleOptions loss_scale = {};  // {.initial = 1024, .dynamic = false}: a fixed one
  bool operator==(const Policy&) const = default;
};
inline constexpr Policy float32{}, mixed_float16{f16, f32, true}, mixed_bfloat16{bf16, f32, false};

}  // namespace gradus
