/// Errors of stages tell where they happened and keep their type.
#pragma once
#include <string>

namespace gradus {

/// Rethrows the exception that is being handled: an Error as the same type of Error, with its message opened by
/// `where`, one of C++'s own library that has no meaning to the user (is_of_library) as an Error, and any other one as
/// it is.
[[noreturn]] void rethrow_in(const std::string& where);

}  // namespace gradus
