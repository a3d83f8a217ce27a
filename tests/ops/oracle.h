/// What a tensor's history says about it: its value by the float64 oracle, and the ops that it is made of.
#pragma once
#include "tests/ops/rows.h"

namespace gradus::rows {

/// The value of `y`, whose history must not have been dropped yet; leaves are read as they are.
Array oracle(const Tensor& y);
std::vector<std::string> ops_in(const Tensor& y);

}  // namespace gradus::rows
