/// What cannot be written, and why.
#include <array>
#include "gradus/backend/xla/lowering.h"

namespace gradus::xla {
namespace {

constexpr std::string_view terms = "the number of terms that an element takes depends on its value";
constexpr std::array refused{Refusal{"igamma", terms}, Refusal{"betainc", terms}, Refusal{"zeta", terms}};

}  // namespace

std::span<const Row> incomplete_rows() { return {}; }
std::span<const Refusal> refusals() { return refused; }

}  // namespace gradus::xla
