/// The version of Gradus, and that of the numeric contract.
#pragma once
#include <string_view>

namespace gradus {

/// "0.1.0"
std::string_view version();

/// Of processes that compute together: "0.1.0 (numeric contract 2)".
std::string_view version_and_contract();

/// The version of the numeric contract (docs/architecture.md): the order in which sums are taken, and with it the bits
/// of results. Processes of different versions do not train together. Checkpoints and exported steps say theirs.
inline constexpr int numeric_contract = 2;

}  // namespace gradus
