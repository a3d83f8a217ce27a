/// Errors of stages tell where they happened and keep their type.
#pragma once
#include <string>

namespace gradus {

/// Rethrows the exception that is being handled, as the same type of Error, with its message opened by `where`. An
/// exception of another type becomes an Error.
[[noreturn]] void rethrow_in(const std::string& where);

}  // namespace gradus
