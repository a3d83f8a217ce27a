#include "gradus/text/added_tokens.h"
#include <map>
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

/// The character that ends before, or begins at, a place within valid UTF-8.
char32_t character_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && unicode::is_inside(text[begin])) --begin;
  return unicode::decoded(text.substr(begin, at - begin), "tokenizer")[0];
}
char32_t character_at(std::string_view text, std::size_t at) {
  return unicode::decoded(text.substr(at, unicode::length_of(text[at])), "tokenizer")[0];
}

std::size_t begin_of_spaces_before(std::string_view text, std::size_t at, std::size_t least) {
  while (at > least && unicode::is_whitespace(character_before(text, at))) {
    --at;
    while (unicode::is_inside(text[at])) --at;
  }
  return std::max(at, least);
}
std::size_t end_of_spaces_at(std::string_view text, std::size_t at) {
  while (at < text.size() && unicode::is_whitespace(character_at(text, at))) at += unicode::length_of(text[at]);
  return at;
}

/// The longest text of a table that stands at a place: its bytes and its number.
std::optional<std::pair<std::size_t, std::int32_t>> longest_at(const PrefixTable& texts, std::string_view rest) {
  std::optional<std::pair<std::size_t, std::int32_t>> longest;
  texts.for_each_prefix(rest, [&](std::size_t bytes, std::int32_t number) { longest = {bytes, number}; });
  return longest;
}

std::string normal_form(const std::string& text, const Normalizer& normalizer) {
  if (!normalizer) return text;
  NormalText normal{unicode::decoded(text, "tokenizer: an added token")};
  normalizer(normal);
  return unicode::encoded(normal.characters);
}

}  // namespace

AddedTokens::AddedTokens(const TokenizerPart& file, const TokenVocabulary& model, const Normalizer& normalizer) {
  if (!file.has("added_tokens")) return;
  std::map<std::string, std::int32_t> as_they_are, normalized;  // a later one takes the place of an earlier one
  for (const TokenizerPart& part : file.list("added_tokens")) {
    const bool is_special = part.get<bool>("special", false);
    Token token{part.id("id"),
                part.get<std::string>("content"),
                part.get<bool>("single_word", false),
                part.get<bool>("lstrip", false),
                part.get<bool>("rstrip", false),
                part.get<bool>("normalized", !is_special),
                is_special};
    if (token.content.empty()) continue;
    if (const auto id = model.id_of(token.content)) token.id = *id;
    const std::string text = token.is_normalized ? normal_form(token.content, normalizer) : token.content;
    if (!text.empty())
      (token.is_normalized ? normalized : as_they_are)[text] = static_cast<std::int32_t>(tokens_.size());
    vocabulary_.add(token.content, token.id, text);  // normalized where it is looked for in normalized text
    if (token.is_special) special_.insert(token.content);
    tokens_.push_back(std::move(token));
  }
  as_they_are_ = PrefixTable({as_they_are.begin(), as_they_are.end()});
  normalized_ = PrefixTable({normalized.begin(), normalized.end()});
}

/// Matches from left to right, the longest at each place. One that is refused is passed over whole.
std::vector<MarkedPiece> AddedTokens::split(const TextPiece& piece, const PrefixTable& texts) const {
  const std::string_view text = piece.text;
  std::vector<MarkedPiece> out;
  const auto put = [&](std::optional<std::int32_t> id, std::size_t begin, std::size_t end) {
    if (begin < end) out.push_back({id, {std::string(text.substr(begin, end - begin)), piece.at_start && begin == 0}});
  };
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !texts.is_empty();) {
    const auto longest = longest_at(texts, text.substr(at));
    if (!longest) {
      ++at;
      continue;
    }
    const Token& token = tokens_[static_cast<std::size_t>(longest->second)];
    std::size_t begin = at, end = at + longest->first;
    at = end;
    const bool touches_word = (begin > 0 && unicode::is_word(character_before(text, begin))) ||
                              (end < text.size() && unicode::is_word(character_at(text, end)));
    if (begin < done || (token.single_word && touches_word)) continue;
    if (token.strips_left) begin = begin_of_spaces_before(text, begin, done);
    if (token.strips_right) end = end_of_spaces_at(text, end);
    put(std::nullopt, done, begin);
    put(token.id, begin, end);
    done = end;
  }
  put(std::nullopt, done, text.size());
  return out;
}

std::vector<MarkedPiece> AddedTokens::taken_out(const std::string& text, const Normalizer& normalizer) const {
  std::vector<MarkedPiece> out;
  for (MarkedPiece& part : split({text, true}, as_they_are_)) {
    if (part.id) {
      out.push_back(std::move(part));
      continue;
    }
    if (normalizer) {
      NormalText normal{unicode::decoded(part.piece.text, "tokenizer")};
      normalizer(normal);
      part.piece = {unicode::encoded(normal.characters), part.piece.at_start && normal.keeps_start};
    }
    for (MarkedPiece& each : split(part.piece, normalized_)) out.push_back(std::move(each));
  }
  return out;
}

bool AddedTokens::is_special(const std::string& token) const { return special_.contains(token); }

}  // namespace gradus
