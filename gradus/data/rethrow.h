/// Errors of stages say where they happened and keep their kind.
#pragma once
#include <string>

namespace gradus {

/// Throws the exception that is being handled again, as the same kind of Error, its message opened by `where`; an
/// exception that is no Error of ours becomes one.
[[noreturn]] void rethrow_in(const std::string& where);

}  // namespace gradus
