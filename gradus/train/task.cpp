/// What does not fit together.
#include "gradus/train/task.h"

namespace gradus::detail {

void fail_fields(std::size_t fields, std::size_t inputs, bool sample_weight) {
  if (sample_weight)
    throw InvalidArgument(text("sample_weight is said, but elements have ", fields, " fields, and the model takes ",
                               inputs, ": there is none left for the weight; expected (x..., y, sample_weight)"));
  throw InvalidArgument(text("elements have ", fields, " fields, but the model takes ", inputs,
                             " besides y; if the last field is a weight, say {.sample_weight = true}"));
}

void fail_weighted_loss() {
  throw InvalidArgument(
      "sample_weight is said, but the loss cannot be called with (y, prediction, sample_weight); give it that "
      "parameter");
}

}  // namespace gradus::detail
