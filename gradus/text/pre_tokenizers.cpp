#include "gradus/text/pre_tokenizers.h"
#include <algorithm>
#include "gradus/text/byte_characters.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

/// How the matches of a pattern divide a text.
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Delimiter delimiter_of(const TokenizerPart& part, const std::string& name) {
  if (name == "Removed") return Delimiter::removed;
  if (name == "Isolated") return Delimiter::isolated;
  if (name == "MergedWithPrevious") return Delimiter::merged_with_previous;
  if (name == "MergedWithNext") return Delimiter::merged_with_next;
  if (name == "Contiguous") return Delimiter::contiguous;
  part.fail("the behavior `", name,
            "` is not supported; supported are Removed, Isolated, MergedWithPrevious, "
            "MergedWithNext and Contiguous");
}

/// A part of a text, and whether it is a match.
struct Part {
  TextRange range;
  bool is_match;
};
using Parts = std::vector<Part>;

/// The whole text: matches and what lies between them.
Parts parts_of(std::size_t size, const std::vector<TextRange>& matches, bool inverted) {
  Parts parts;
  std::size_t done = 0;
  for (const TextRange& match : matches) {
    if (done < match.begin) parts.push_back({{done, match.begin}, inverted});
    parts.push_back({match, !inverted});
    done = match.end;
  }
  if (done < size) parts.push_back({{done, size}, inverted});
  return parts;
}

/// Parts that follow each other become one where `joins(this is a match, the one before is)`.
template <class Joins> Parts joined_parts(const Parts& parts, const Joins& joins) {
  Parts out;
  bool previous = false;
  for (const Part& part : parts) {
    if (!out.empty() && joins(part.is_match, previous)) out.back().range.end = part.range.end;
    else out.push_back(part);
    previous = part.is_match;
  }
  return out;
}

Parts merged_with_next(Parts parts) {
  Parts out;
  bool next = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!out.empty() && part->is_match && !next) out.back().range.begin = part->range.begin;
    else out.push_back(*part);
    next = part->is_match;
  }
  std::ranges::reverse(out);
  return out;
}

Parts divided_parts(Parts parts, Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::isolated: return parts;
    case Delimiter::removed: std::erase_if(parts, [](const Part& part) { return part.is_match; }); return parts;
    case Delimiter::contiguous:
      return joined_parts(parts, [](bool is_match, bool previous) { return is_match == previous; });
    case Delimiter::merged_with_previous:
      return joined_parts(parts, [](bool is_match, bool previous) { return is_match && !previous; });
    case Delimiter::merged_with_next: return merged_with_next(std::move(parts));
  }
  return parts;
}

using Matches = std::function<std::vector<TextRange>(const std::string&)>;

/// Divides every piece.
PreTokenizer splitter(Matches matches, Delimiter delimiter, bool inverted = false) {
  return [=](const TextPieces& pieces) {
    TextPieces out;
    for (const TextPiece& piece : pieces)
      for (const Part& part : divided_parts(parts_of(piece.text.size(), matches(piece.text), inverted), delimiter))
        out.push_back({piece.text.substr(part.range.begin, part.range.end - part.range.begin),
                       piece.at_start && part.range.begin == 0});
    return out;
  };
}

/// Each character for which a predicate is true.
Matches characters_where(std::function<bool(char32_t)> predicate) {
  return [predicate = std::move(predicate)](const std::string& text) {
    std::vector<TextRange> found;
    std::size_t at = 0;
    for (const char32_t c : unicode::decoded(text, "tokenizer")) {
      const std::size_t bytes = unicode::length_of(text[at]);
      if (predicate(c)) found.push_back({at, at + bytes});
      at += bytes;
    }
    return found;
  };
}

/// `\w+|[^\w\s]+`.
std::vector<TextRange> words_and_marks(const std::string& text) {
  enum class Kind { space, word, mark };
  std::vector<TextRange> found;
  Kind before = Kind::space;
  std::size_t at = 0;
  for (const char32_t c : unicode::decoded(text, "tokenizer")) {
    const std::size_t bytes = unicode::length_of(text[at]);
    const Kind kind = unicode::is_word(c) ? Kind::word : unicode::is_whitespace(c) ? Kind::space : Kind::mark;
    if (kind != Kind::space) {
      if (kind == before) found.back().end += bytes;
      else found.push_back({at, at + bytes});
    }
    before = kind;
    at += bytes;
  }
  return found;
}

PreTokenizer one_after_the_other(std::vector<PreTokenizer> all) {
  return [all = std::move(all)](TextPieces pieces) {
    for (const PreTokenizer& each : all) pieces = each(std::move(pieces));
    return pieces;
  };
}

/// GPT-2's pattern (Radford et al. 2019).
const Pattern& gpt2_pattern() {
  static const Pattern pattern =
      Pattern::expression(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "tokenizer");
  return pattern;
}

PreTokenizer byte_level(const TokenizerPart& part) {
  const bool prepends = part.get<bool>("add_prefix_space", true), splits = part.get<bool>("use_regex", true);
  const PreTokenizer split =
      splitter([](const std::string& text) { return gpt2_pattern().matches(text); }, Delimiter::isolated);
  return [=](TextPieces pieces) {
    for (TextPiece& piece : pieces)
      if (prepends && !piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
    if (splits) pieces = split(std::move(pieces));
    for (TextPiece& piece : pieces) piece.text = as_byte_characters(piece.text);
    return pieces;
  };
}

PreTokenizer metaspace(const TokenizerPart& part) {
  const Metaspace options = Metaspace::of(part);
  const Pattern space = Pattern::literal(" ", part.where()), mark = Pattern::literal(options.replacement, part.where());
  const PreTokenizer split =
      splitter([mark](const std::string& text) { return mark.matches(text); }, Delimiter::merged_with_next);
  return [=](TextPieces pieces) {
    for (TextPiece& piece : pieces) {
      piece.text = replaced(piece.text, space.matches(piece.text), options.replacement);
      const bool may_prepend = options.prepend == Metaspace::Prepend::always ||
                               (options.prepend == Metaspace::Prepend::first && piece.at_start);
      if (may_prepend && !piece.text.starts_with(options.replacement)) piece.text.insert(0, options.replacement);
    }
    return options.split ? split(std::move(pieces)) : pieces;
  };
}

PreTokenizer split_by_pattern(const TokenizerPart& part) {
  const Pattern pattern = part.pattern("pattern");
  return splitter([pattern](const std::string& text) { return pattern.matches(text); },
                  delimiter_of(part, part.get<std::string>("behavior")), part.get<bool>("invert", false));
}

PreTokenizer pre_tokenizers_in_sequence(const TokenizerPart& part) {
  std::vector<PreTokenizer> all;
  for (const TokenizerPart& each : part.list("pretokenizers")) all.push_back(pre_tokenizer_of(each));
  return one_after_the_other(std::move(all));
}

}  // namespace

Metaspace Metaspace::of(const TokenizerPart& part) {
  Metaspace options;
  unicode::append(options.replacement, part.character("replacement"));
  const bool prepends = part.get<bool>("add_prefix_space", true);  // of older files
  const std::string scheme = part.get<std::string>("prepend_scheme", prepends ? "always" : "never");
  if (scheme == "always") options.prepend = Prepend::always;
  else if (scheme == "first") options.prepend = Prepend::first;
  else if (scheme == "never") options.prepend = Prepend::never;
  else part.fail("the prepend_scheme `", scheme, "` is not supported; supported are always, first and never");
  options.split = part.get<bool>("split", true);
  return options;
}

PreTokenizer pre_tokenizer_of(const TokenizerPart& part) {
  const std::string type = part.type();
  if (type == "ByteLevel") return byte_level(part);
  if (type == "Whitespace") return splitter(words_and_marks, Delimiter::removed, true);
  if (type == "WhitespaceSplit") return splitter(characters_where(unicode::is_whitespace), Delimiter::removed);
  if (type == "BertPreTokenizer")
    return one_after_the_other({splitter(characters_where(unicode::is_whitespace), Delimiter::removed),
                                splitter(characters_where(unicode::is_punctuation), Delimiter::isolated)});
  if (type == "Metaspace") return metaspace(part);
  if (type == "Punctuation")
    return splitter(characters_where(unicode::is_punctuation),
                    delimiter_of(part, part.get<std::string>("behavior", "Isolated")));
  if (type == "Digits")
    return splitter(characters_where(unicode::is_number),
                    part.get<bool>("individual_digits", false) ? Delimiter::isolated : Delimiter::contiguous);
  if (type == "Split") return split_by_pattern(part);
  if (type == "CharDelimiterSplit")
    return splitter(characters_where([c = part.character("delimiter")](char32_t other) { return other == c; }),
                    Delimiter::removed);
  if (type == "Sequence") return pre_tokenizers_in_sequence(part);
  part.fail_unsupported("pre-tokenizer",
                        "ByteLevel, Whitespace, WhitespaceSplit, BertPreTokenizer, Metaspace, "
                        "Punctuation, Digits, Split, CharDelimiterSplit and Sequence");
}

}  // namespace gradus
