/// Tables of words, rules for families of macros, and the names that the C library of this machine exports.
#include "gradus/backend/c_words.h"
#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <string>

namespace gradus {
namespace {

constexpr auto keywords = std::to_array<std::string_view>(
    {// C99 to C23
     "alignas", "alignof", "auto", "bool", "break", "case", "char", "const", "constexpr", "continue", "default", "do",
     "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "long", "nullptr",
     "register", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "struct", "switch",
     "thread_local", "true", "typedef", "typeof", "typeof_unqual", "union", "unsigned", "void", "volatile", "while",
     // C++
     "and", "and_eq", "asm", "bitand", "bitor", "catch", "char16_t", "char32_t", "char8_t", "class", "co_await",
     "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constinit", "contract_assert", "decltype",
     "delete", "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "not",
     "not_eq", "operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast", "requires",
     "static_cast", "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor",
     "xor_eq",
     // compilers on Linux
     "i386", "linux", "unix"});

constexpr auto macros_and_types = std::to_array<std::string_view>(
    {"BUFSIZ", "CHAR_BIT", "CLOCKS_PER_SEC", "CMPLX", "CMPLXF", "CMPLXL", "DECIMAL_DIG", "FILE", "HUGE_VAL",
     "HUGE_VALF", "HUGE_VALL", "I", "INFINITY", "NAN", "NDEBUG", "NULL", "ONCE_FLAG_INIT", "TIME_UTC",
     "TSS_DTOR_ITERATIONS", "alloca", "assert", "complex", "errno", "imaginary", "math_errhandling", "noreturn",
     "offsetof", "setjmp", "stderr", "stdin", "stdout", "unreachable", "va_arg", "va_copy", "va_end", "va_list",
     "va_start",
     // types
     "clock_t", "cnd_t", "div_t", "double_t", "fenv_t", "fexcept_t", "float_t", "fpos_t", "imaxdiv_t", "ldiv_t",
     "lldiv_t", "max_align_t", "mbstate_t", "memory_order", "mtx_t", "nullptr_t", "once_flag", "ptrdiff_t",
     "sig_atomic_t", "size_t", "ssize_t", "thrd_t", "time_t", "tss_t", "wctrans_t", "wctype_t", "wint_t"});

/// Macros, and names that libraries need not export.
constexpr auto functions =
    std::to_array<std::string_view>({"at_quick_exit", "atexit",         "atomic_init", "carg",        "cimag",
                                     "conj",          "cproj",          "creal",       "fpclassify",  "isfinite",
                                     "isgreater",     "isgreaterequal", "isinf",       "isless",      "islessequal",
                                     "islessgreater", "isnan",          "isnormal",    "isunordered", "kill_dependency",
                                     "main",          "memcpy",         "memmove",     "memset",      "signbit"});

bool is_in(std::string_view name, const auto& table) { return std::ranges::find(table, name) != table.end(); }
bool is_capital(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// Macros such as INT8_MAX, PRIu64, SIGINT, EINTR and FE_UPWARD: C reserves their whole families.
bool is_of_a_family(std::string_view name) {
  const auto begins = [&](std::string_view with) { return name.size() > with.size() && name.starts_with(with); };
  if (begins("PRI") || begins("SCN")) return name.find_first_of("XMdiouxbB") == 3;
  if (!std::ranges::all_of(name, is_capital)) return false;
  constexpr auto prefixes = std::to_array<std::string_view>({"E", "SIG", "FE_", "FP_", "FLT_", "DBL_", "LDBL_", "LC_",
                                                             "ATOMIC_", "CLOCK_", "SEEK_", "EXIT_", "MATH_", "TIME_"});
  const bool is_limit = name.ends_with("_MAX") || name.ends_with("_MIN") || name.ends_with("_WIDTH");
  const bool is_literal = name.ends_with("_C") && (begins("INT") || begins("UINT"));
  return is_limit || is_literal || std::ranges::any_of(prefixes, begins);
}

/// int8_t, uint_fast16_t, intmax_t, atomic_int ...
bool is_numbered_type(std::string_view name) {
  if (name.starts_with("atomic_")) return true;
  if (!name.ends_with("_t")) return false;
  if (name.starts_with("u")) name.remove_prefix(1);
  return name.starts_with("int") && name.find_first_of("0123456789mp_") == 3;
}

/// True if the libraries of every C program export the name on this machine.
bool is_exported(std::string_view name) {
  const std::string symbol(name);
  return std::ranges::any_of(std::array{"libc.so.6", "libm.so.6"}, [&](const char* library) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return false;
    const bool found = dlsym(handle, symbol.c_str()) != nullptr;
    dlclose(handle);
    return found;
  });
}

}  // namespace

bool is_word_of_c(std::string_view name) {
  return name.starts_with('_') || is_in(name, keywords) || is_in(name, macros_and_types) || is_of_a_family(name) ||
         is_numbered_type(name);
}

bool is_function_of_c(std::string_view name) {
  return is_word_of_c(name) || is_in(name, functions) || is_exported(name);
}

}  // namespace gradus
