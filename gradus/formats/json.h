/// Reading JSON that others wrote. Nothing of it is taken for granted: levels have a bound, since what reads, copies
/// and writes a value calls itself for each; a key stands once in an object; numbers do not depend on the caller's
/// locale.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace gradus {

inline constexpr int max_json_depth = 200;

/// DataError says `source`, the byte and what is wrong there. Instances: nlohmann::json, nlohmann::ordered_json.
template <class Json = nlohmann::json> Json parse_json(std::string_view written, std::string_view source);
/// null if `written` is none that parse_json takes: of logs, whose last line may be cut off.
template <class Json = nlohmann::json> Json json_if_any(std::string_view written);

extern template nlohmann::json parse_json(std::string_view, std::string_view);
extern template nlohmann::ordered_json parse_json(std::string_view, std::string_view);
extern template nlohmann::json json_if_any(std::string_view);
extern template nlohmann::ordered_json json_if_any(std::string_view);

}  // namespace gradus
