/// TextEncoding: what a tokenizer makes of a text, or of a pair of texts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gradus {

namespace detail::inline rooms {

/// Tokens of a text, one entry each in every list.
struct TextEncoding {
  std::vector<std::int32_t> ids;             // in the vocabulary
  std::vector<std::int32_t> type_ids;        // 0, or 1 for the second text of a pair
  std::vector<std::string> tokens;           // as the vocabulary has them
  std::vector<std::int32_t> special;         // 1 for tokens that were added around the text, and for padding
  std::vector<std::int32_t> attention_mask;  // 0 for padding

  /// The number of tokens.
  std::int64_t size() const { return std::ssize(ids); }

  // For the rooms of the library.
  void add(std::int32_t id, std::string token, std::int32_t type, bool is_special) {
    ids.push_back(id);
    tokens.push_back(std::move(token));
    type_ids.push_back(type);
    special.push_back(is_special);
    attention_mask.push_back(1);
  }
  void append(const TextEncoding& other) {
    for_both(other, [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); });
  }
  /// Keeps tokens [begin, end).
  void keep(std::int64_t begin, std::int64_t end) {
    for_both(*this, [=](auto& list, const auto&) {
      list.erase(list.begin() + end, list.end());
      list.erase(list.begin(), list.begin() + begin);
    });
  }

 private:
  template <class F> void for_both(const TextEncoding& other, const F& f) {
    f(ids, other.ids);
    f(type_ids, other.type_ids);
    f(tokens, other.tokens);
    f(special, other.special);
    f(attention_mask, other.attention_mask);
  }
};

}  // namespace detail::inline rooms

}  // namespace gradus
