/// Patterns of a tokenizer: literal text, or a regular expression by PCRE2, whose header pattern.cpp alone sees.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus {

/// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin, end;
};

class Pattern {
 public:
  /// Literal text. DataError, opened by `where`, if it is empty.
  static Pattern literal(std::string text, std::string_view where);
  /// An expression over characters of Unicode. DataError, opened by `where`, if it is none.
  static Pattern expression(const std::string& written, std::string_view where);
  /// All matches from left to right, which do not overlap. ResourceExhausted if the expression takes too many steps.
  std::vector<TextRange> matches(std::string_view text) const;

 private:
  struct Compiled;
  std::string literal_;
  std::shared_ptr<const Compiled> compiled_;  // null: literal
};

/// The text with each match replaced.
std::string replaced(std::string_view text, const std::vector<TextRange>& matches, std::string_view with);

}  // namespace gradus
