/// Random programs made of op rows, which say what each op takes: domains, dtypes, shapes, data beside tensors.
#pragma once
#include "tests/properties/program.h"

namespace gradus::properties {

struct Taste {
  /// f64 alone and away from kinks and poles, so that differences tell; else all dtypes.
  bool smooth = true;
  int least_steps = 3, most_steps = 25;
  std::int64_t largest = 48;  // elements of a value
};

/// The program of this seed: the same in every run.
Program generate(std::uint64_t seed, const Taste& taste, const std::vector<rows::Row>& rows);

}  // namespace gradus::properties
