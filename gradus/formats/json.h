/// Reading untrusted JSON. Nothing is taken for granted. Nesting has a bound, since reading, copying and writing a
/// value recurse once per level. A key occurs once in an object. Numbers do not depend on the caller's locale.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace gradus {

/// Most levels of nesting.
inline constexpr int max_json_depth = 200;

/// Parses `written`. DataError names `source`, the byte and what is wrong there. Instances: nlohmann::json,
/// nlohmann::ordered_json.
template <class Json = nlohmann::json> Json parse_json(std::string_view written, std::string_view source);
/// Parses `written`, or gives null if parse_json does not take it: for logs, whose last line may be cut off.
template <class Json = nlohmann::json> Json json_if_any(std::string_view written);

extern template nlohmann::json parse_json(std::string_view, std::string_view);
extern template nlohmann::ordered_json parse_json(std::string_view, std::string_view);
extern template nlohmann::json json_if_any(std::string_view);
extern template nlohmann::ordered_json json_if_any(std::string_view);

}  // namespace gradus
