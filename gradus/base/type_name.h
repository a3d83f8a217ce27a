/// Names of types, for messages.
#pragma once
#include <string>

namespace gradus {

namespace detail::inline rooms {
/// The name for typeid(T).name(), such as "my_program::Net".
std::string type_name(const char* mangled);
}  // namespace detail::inline rooms

}  // namespace gradus
