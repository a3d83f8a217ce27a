/// Names of types, for messages.
#pragma once
#include <string>

namespace gradus {

/// The name for typeid(T).name(), such as "my_program::Net".
std::string type_name(const char* mangled);

}  // namespace gradus
