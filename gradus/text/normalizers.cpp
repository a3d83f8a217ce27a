#include "gradus/text/normalizers.h"
#include <algorithm>
#include "gradus/text/byte_characters.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

Normalizer in_form(unicode::Form form) {
  return [form](NormalText& text) { text.characters = unicode::normalized(text.characters, form); };
}

void to_lower(NormalText& text) {
  std::u32string lower;
  for (const char32_t c : text.characters) unicode::append_lower(lower, c);
  text.characters = std::move(lower);
}

/// BERT's: controls go, every kind of space becomes one.
void clean(NormalText& text) {
  std::erase_if(text.characters, [](char32_t c) {
    const bool is_space = c == '\t' || c == '\n' || c == '\r';
    return c == 0 || c == 0xFFFD || (!is_space && unicode::is_other(c));
  });
  std::ranges::replace_if(text.characters, unicode::is_whitespace, U' ');
}

void space_ideographs(NormalText& text) {
  std::u32string spaced;
  for (const char32_t c : text.characters) {
    if (unicode::is_ideograph(c)) (spaced += U' ') += c, spaced += U' ';
    else spaced += c;
  }
  text.characters = std::move(spaced);
}

Normalizer bert_normalizer(const TokenizerPart& part) {
  const bool cleans = part.get<bool>("clean_text", true), spaces = part.get<bool>("handle_chinese_chars", true);
  const bool lowers = part.get<bool>("lowercase", true), strips = part.get<bool>("strip_accents", bool(lowers));
  return [=](NormalText& text) {
    if (cleans) clean(text);
    if (spaces) space_ideographs(text);
    if (strips) {
      text.characters = unicode::normalized(text.characters, unicode::Form::nfd);
      std::erase_if(text.characters, unicode::is_nonspacing_mark);
    }
    if (lowers) to_lower(text);
  };
}

Normalizer strip_normalizer(const TokenizerPart& part) {
  const bool left = part.get<bool>("strip_left", true), right = part.get<bool>("strip_right", true);
  return [=](NormalText& text) {
    std::u32string& all = text.characters;
    if (right) all.erase(std::find_if_not(all.rbegin(), all.rend(), unicode::is_whitespace).base(), all.end());
    if (!left) return;
    const auto begin = std::ranges::find_if_not(all, unicode::is_whitespace);
    text.keeps_start &= begin == all.begin();
    all.erase(all.begin(), begin);
  };
}

Normalizer replace_normalizer(const TokenizerPart& part) {
  return [pattern = part.pattern("pattern"), content = part.get<std::string>("content")](NormalText& text) {
    const std::string utf8 = unicode::encoded(text.characters);
    const std::vector<TextRange> matches = pattern.matches(utf8);
    if (!matches.empty()) text.characters = unicode::decoded(replaced(utf8, matches, content), "tokenizer");
  };
}

Normalizer prepend_normalizer(const TokenizerPart& part) {
  return [prefix = unicode::decoded(part.get<std::string>("prepend"), part.where())](NormalText& text) {
    if (!text.characters.empty()) text.characters.insert(0, prefix);
  };
}

Normalizer normalizers_in_sequence(const TokenizerPart& part) {
  std::vector<Normalizer> all;
  for (const TokenizerPart& each : part.list("normalizers")) all.push_back(normalizer_of(each));
  return [all](NormalText& text) {
    for (const Normalizer& each : all) each(text);
  };
}

}  // namespace

Normalizer normalizer_of(const TokenizerPart& part) {
  const std::string type = part.type();
  if (type == "NFC") return in_form(unicode::Form::nfc);
  if (type == "NFD") return in_form(unicode::Form::nfd);
  if (type == "NFKC") return in_form(unicode::Form::nfkc);
  if (type == "NFKD") return in_form(unicode::Form::nfkd);
  if (type == "Lowercase") return to_lower;
  if (type == "StripAccents") return [](NormalText& text) { std::erase_if(text.characters, unicode::is_mark); };
  if (type == "BertNormalizer") return bert_normalizer(part);
  if (type == "Strip") return strip_normalizer(part);
  if (type == "Replace") return replace_normalizer(part);
  if (type == "Prepend") return prepend_normalizer(part);
  if (type == "Sequence") return normalizers_in_sequence(part);
  if (type == "ByteLevel")
    return [](NormalText& text) {
      text.characters = unicode::decoded(as_byte_characters(unicode::encoded(text.characters)), "tokenizer");
    };
  part.fail_unsupported("normalizer",
                        "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, BertNormalizer, Strip, Replace, "
                        "Prepend, ByteLevel and Sequence");
}

}  // namespace gradus
