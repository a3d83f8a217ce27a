/// A traced step becomes text for accelerators.
#pragma once
#include <string>
#include "gradus/function/segment.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// The one program of a function as StableHLO, with comments on its arguments and results.
std::string stablehlo_text(const FunctionOptions& function, const std::string& title, Draft draft);

}  // namespace gradus
