/// Parts of a tokenizer.json as they are read: each knows where it stands, so that an error can say so.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/text/pattern.h"

namespace gradus {

class TokenizerPart {
 public:
  /// `where`: the file, and the path of keys to `value`.
  TokenizerPart(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}
  const std::string& where() const { return where_; }
  const nlohmann::json& json() const { return *value_; }
  /// True if there is a value that is not null.
  bool has(const char* key) const { return value_->is_object() && value_->contains(key) && !(*value_)[key].is_null(); }
  /// The part of a key. DataError if there is none.
  TokenizerPart at(const char* key) const;
  /// The elements of the array of a key. DataError if there is none.
  std::vector<TokenizerPart> list(const char* key) const;
  /// The value of a key. DataError if there is none, or one of another type. Instances: bool, std::int64_t, double,
  /// std::string.
  template <class T> T get(const char* key) const;
  /// The same, or `otherwise` where there is none.
  template <class T> T get(const char* key, T otherwise) const { return has(key) ? get<T>(key) : otherwise; }
  /// The value of this part.
  template <class T> T as() const;
  /// The character of a key. DataError for another text.
  char32_t character(const char* key) const;
  /// The name of its kind, "type". DataError if there is none.
  std::string type() const { return get<std::string>("type"); }
  /// An id of a token: 0 to 2^31 - 1.
  std::int32_t id(const char* key) const;
  std::int32_t as_id() const;
  /// A pattern: {"String": ...} or {"Regex": ...}.
  Pattern pattern(const char* key) const;

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    throw DataError(text(where_, ": ", parts...));
  }
  /// A kind of `what` that the library does not have.
  [[noreturn]] void fail_unsupported(std::string_view what, std::string_view supported) const {
    fail("the ", what, " `", type(), "` is not supported; supported are ", supported);
  }

 private:
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace gradus
