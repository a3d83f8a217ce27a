/// Uses the runtime of the C++ compiler.
#include "gradus/base/type_name.h"
#include <cxxabi.h>
#include <cstdlib>
#include <memory>

namespace gradus {

std::string detail::type_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? name.get() : mangled;
}

}  // namespace gradus
