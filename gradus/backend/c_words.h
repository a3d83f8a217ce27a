/// Names with a meaning in C or C++; a header that declares one does not compile.
#pragma once
#include <string_view>

namespace gradus {

/// True for a keyword of C or C++, a type or macro of C's headers, or a name that C reserves for them. It cannot name a
/// variable or field.
bool is_word_of_c(std::string_view name);

/// True also for `main` and functions of the C library. A function of this name does not compile, or replaces the
/// library's in the whole program.
bool is_function_of_c(std::string_view name);

}  // namespace gradus
