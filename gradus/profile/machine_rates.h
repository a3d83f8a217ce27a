/// MachineRates: the most that one thread of this machine can do: thread_rates(), and memory, measured once.
#pragma once

namespace gradus {

struct MachineRates {
  double flops = 0;         // multiplications and additions a second, in vectors of f32 from registers
  double narrow_flops = 0;  // in products of 16 bits
  double bytes = 0;         // read and written a second, in memory that no cache holds
};

/// Measured at the first call, in some 30 milliseconds.
const MachineRates& machine_rates();

}  // namespace gradus
