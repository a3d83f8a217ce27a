/// The public name of the choice that backend/cpu/isa.h makes.
#include "gradus/backend/instruction_set.h"
#include "gradus/backend/cpu/isa.h"

namespace gradus {

std::string_view instruction_set() {
  return cpu_backend::uses_amx() ? "avx512 with AMX" : cpu_backend::name(cpu_backend::isa());
}

}  // namespace gradus
