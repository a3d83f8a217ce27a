/// The version of Gradus, and that of the numeric contract.
#pragma once
#include <string_view>

namespace gradus {

/// "0.1.0"
std::string_view version();

/// The version that processes of one computation compare: "0.1.0 (numeric contract 2)".
std::string_view version_and_contract();

/// The version of the numeric contract (docs/architecture.md), which fixes the order of sums, and so the bits of
/// results. Processes of different versions do not train together. Checkpoints and exported steps record it.
inline constexpr int numeric_contract = 2;

}  // namespace gradus
