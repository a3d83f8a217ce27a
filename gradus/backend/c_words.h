/// Names that mean something in C or C++, so that a header which declares one is no header.
#pragma once
#include <string_view>

namespace gradus {

/// A keyword of C or C++, a type or macro of C's headers, or a name that C reserves for them: it is no name of a
/// variable or field.
bool is_word_of_c(std::string_view name);

/// That, or `main`, or a function of the C library: a function of this name would be none, or would take the place of
/// the library's in the whole program.
bool is_function_of_c(std::string_view name);

}  // namespace gradus
