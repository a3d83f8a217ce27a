/// Policy: the dtypes in which layers compute and keep their variables.
#pragma once
#include <string>
#include <string_view>
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

/// The policy with this name in Keras: "float32", "mixed_float16", "mixed_bfloat16". InvalidArgument for another name.
Policy policy_named(std::string_view name);

/// A policy as an option: mixed_float16, its name, or its dtypes {f16, f32, true}.
class PolicyOption {
 public:
  constexpr PolicyOption(const Policy& policy) : policy_(policy) {}
  PolicyOption(const char* name) : policy_(policy_named(name)) {}
  PolicyOption(const std::string& name) : policy_(policy_named(name)) {}
  constexpr PolicyOption(DType compute, DType variable, bool scale_loss = false, LossScaleOptions loss_scale = {})
      : policy_{compute, variable, scale_loss, loss_scale} {}
  /// The policy itself.
  constexpr const Policy& value() const { return policy_; }

 private:
  Policy policy_;
};

}  // namespace gradus
