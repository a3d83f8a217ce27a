/// The text of a target. Decision 226 has the reasons.
#include "gradus/compiler/target_model.h"
#include "gradus/base/error.h"

namespace gradus {

std::string to_text(const TargetModel& t) {
  const auto kib = [](std::int64_t bytes) { return bytes >> 10; };
  return text(t.name, ": a byte moved costs ", t.instructions_per_byte, " instructions, one kept ",
              t.instructions_per_kept_byte, ", from ", kib(t.least_moved_bytes), " KiB on; caches hold ",
              kib(t.most_cached_bytes), " KiB, weights in turns ", kib(t.least_weights_in_turns), " to ",
              kib(t.most_weights_in_turns), " KiB; products of at most ", t.deepest_product,
              " steps are joined with formulas from ", kib(t.least_joined_bytes), " KiB and ", t.least_joined_elements,
              " elements on; at most ", t.most_fused, " formulas a kernel, which costs ", t.kernel_overhead_ns,
              " ns besides its work; rows of ", t.least_row_elements, " elements and more are walked by vectors");
}

}  // namespace gradus
