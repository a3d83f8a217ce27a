/// Policies by their names.
#include "gradus/nn/policy.h"
#include "gradus/base/nearest.h"

namespace gradus {

Policy policy_named(std::string_view name) {
  if (name == "float32") return float32;
  if (name == "mixed_float16") return mixed_float16;
  if (name == "mixed_bfloat16") return mixed_bfloat16;
  const std::vector<std::string> known{"float32", "mixed_float16", "mixed_bfloat16"};
  throw InvalidArgument(text("policy: there is no `", name, "`; there are float32, mixed_float16 and mixed_bfloat16",
                             did_you_mean(std::string(name), known)));
}

}  // namespace gradus
