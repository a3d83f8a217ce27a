#include "gradus/text/tokenizer_json.h"
#include <limits>
#include "gradus/text/unicode.h"

namespace gradus {

TokenizerPart TokenizerPart::at(const char* key) const {
  if (!has(key)) fail("there is no `", key, "`");
  return {(*value_)[key], text(where_, ".", key)};
}

std::vector<TokenizerPart> TokenizerPart::list(const char* key) const {
  const TokenizerPart array = at(key);
  if (!array.json().is_array()) array.fail("expected an array, found ", array.json().type_name());
  std::vector<TokenizerPart> parts;
  for (std::size_t i = 0; i < array.json().size(); ++i)
    parts.emplace_back(array.json()[i], text(array.where(), "[", i, "]"));
  return parts;
}

template <class T> T TokenizerPart::as() const {
  const bool fits = std::is_same_v<T, bool>           ? value_->is_boolean()
                    : std::is_same_v<T, std::int64_t> ? value_->is_number_integer()
                    : std::is_same_v<T, double>       ? value_->is_number()
                                                      : value_->is_string();
  if (!fits) fail("found ", value_->type_name(), ", expected another type");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail("the number ", value_->get<std::uint64_t>(), " is too large");
  return value_->get<T>();
}
template <class T> T TokenizerPart::get(const char* key) const { return at(key).as<T>(); }

template bool TokenizerPart::as() const;
template std::int64_t TokenizerPart::as() const;
template double TokenizerPart::as() const;
template std::string TokenizerPart::as() const;
template bool TokenizerPart::get(const char*) const;
template std::int64_t TokenizerPart::get(const char*) const;
template double TokenizerPart::get(const char*) const;
template std::string TokenizerPart::get(const char*) const;

char32_t TokenizerPart::character(const char* key) const {
  const std::u32string characters = unicode::decoded(get<std::string>(key), where_);
  if (characters.size() != 1) fail("`", key, "` has ", characters.size(), " characters, expected one");
  return characters[0];
}

std::int32_t TokenizerPart::as_id() const {
  const auto id = as<std::int64_t>();
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) fail("the id ", id, " is out of range");
  return static_cast<std::int32_t>(id);
}
std::int32_t TokenizerPart::id(const char* key) const { return at(key).as_id(); }

Pattern TokenizerPart::pattern(const char* key) const {
  const TokenizerPart part = at(key);
  if (part.has("String")) return Pattern::literal(part.get<std::string>("String"), part.where());
  if (part.has("Regex")) return Pattern::expression(part.get<std::string>("Regex"), part.where());
  part.fail("expected {\"String\": ...} or {\"Regex\": ...}");
}

}  // namespace gradus
