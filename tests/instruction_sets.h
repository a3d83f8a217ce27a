/// The instruction sets that this processor runs.
#pragma once
#include <vector>
#include "gradus/backend/cpu/isa.h"

namespace gradus {

/// The narrowest first.
inline std::vector<cpu_backend::Isa> isas_here() {
  std::vector<cpu_backend::Isa> all;
  for (const cpu_backend::Processor& each : cpu_backend::processors)
    if (cpu_backend::is_own(each) && !each.uses_amx && each.isa <= cpu_backend::widest_isa()) all.push_back(each.isa);
  return all;
}
inline cpu_backend::Isa narrowest_isa() { return isas_here().front(); }

}  // namespace gradus
