/// What a type is called, for messages.
#pragma once
#include <string>

namespace gradus {

/// Of typeid(T).name(): "my_program::Net".
std::string type_name(const char* mangled);

}  // namespace gradus
