/// Fields of foreign JSON, with messages about unexpected ones.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include "gradus/base/error.h"
#include "gradus/formats/json.h"

namespace gradus {

inline std::string_view kind_of(const nlohmann::json& value) {
  if (value.is_number_integer()) return "an integer";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return value.is_null() ? "null" : "a boolean";
}

inline DataError unexpected(std::string_view source, std::string_view field, std::string_view wanted,
                            const nlohmann::json& given) {
  return DataError(text(source, ": `", field, "` is ", kind_of(given), ", expected ", wanted));
}

inline int integer(const nlohmann::json& value, std::string_view source, std::string_view field) {
  if (!value.is_number_integer()) throw unexpected(source, field, "an integer", value);
  constexpr std::int64_t most = 1'000'000'000;
  const bool is_small = value.is_number_unsigned()
                            ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                            : value.get<std::int64_t>() >= -most && value.get<std::int64_t>() <= most;
  require<DataError>(is_small, source, ": `", field, "` is ", value.dump(), ", which is out of all bounds");
  return value.get<int>();
}

inline std::string string(const nlohmann::json& value, std::string_view source, std::string_view field) {
  if (!value.is_string()) throw unexpected(source, field, "a string", value);
  return value.get<std::string>();
}

/// On one line. Texts of others may hold bytes that are no UTF-8.
inline std::string written(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The object that is written; DataError if it is none.
inline nlohmann::json object(std::string_view written, std::string_view source) {
  nlohmann::json read = parse_json(written, source);
  require<DataError>(read.is_object(), source, ": the value is ", kind_of(read), ", expected an object");
  return read;
}

/// The field of an object; DataError if there is none.
inline const nlohmann::json& field(const nlohmann::json& object, std::string_view source, const std::string& name) {
  const auto found = object.find(name);
  require<DataError>(found != object.end(), source, ": `", name, "` is missing");
  return *found;
}

}  // namespace gradus
