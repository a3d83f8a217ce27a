/// What this machine can do: arithmetic from registers, and memory that no cache holds.
#pragma once
#include <optional>

namespace gradus::bench {

/// Of all threads together, in units of 1e9 a second; bytes count once for each read and once for each write.
struct Machine {
  double flops = 0;                    // f32, fused multiply-adds
  std::optional<double> narrow_flops;  // products of bf16, by AMX, in pairs or as f32; nothing without an instruction
  double read = 0, copy = 0, copy_past_caches = 0, in_place = 0;
};

/// Takes about four seconds. The best of several attempts: a limit is what nothing can be faster than.
Machine measure_machine();

}  // namespace gradus::bench
