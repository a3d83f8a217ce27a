#include "gradus/text/token_decoders.h"
#include <charconv>
#include <optional>
#include "gradus/text/byte_characters.h"
#include "gradus/text/pre_tokenizers.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

using TokenList = std::vector<std::string>;

std::string all_together(const TokenList& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

/// A decoder of each token by its place.
TokenDecoder by_token(std::function<std::string(std::string, std::size_t, std::size_t)> decode) {
  return [decode = std::move(decode)](TokenList tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = decode(std::move(tokens[i]), i, tokens.size());
    return tokens;
  };
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// English contractions and marks without the space before them, as BERT's decoder writes them.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) replace_all(text, from, to);
}

TokenDecoder word_piece_decoder(const TokenizerPart& part) {
  const std::string prefix = part.get<std::string>("prefix", "##");
  const bool cleans = part.get<bool>("cleanup", true);
  return by_token([=](std::string token, std::size_t i, std::size_t) {
    if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : ' ' + token;
    if (cleans) clean_up(token);
    return token;
  });
}

TokenDecoder metaspace_decoder(const TokenizerPart& part) {
  const Metaspace options = Metaspace::of(part);
  return by_token([=](std::string token, std::size_t i, std::size_t) {
    const bool drops = i == 0 && options.prepend != Metaspace::Prepend::never;
    replace_all(token, options.replacement, drops ? "" : " ");
    return token;
  });
}

TokenDecoder byte_pair_decoder(const TokenizerPart& part) {
  return by_token(
      [suffix = part.get<std::string>("suffix", "</w>")](std::string token, std::size_t i, std::size_t count) {
        replace_all(token, suffix, i + 1 == count ? "" : " ");
        return token;
      });
}

std::optional<char> byte_of_token(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
  unsigned value = 0;
  const auto parsed = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return parsed.ptr == token.data() + 5 ? std::optional(static_cast<char>(value)) : std::nullopt;
}

bool is_valid_utf8(const std::string& bytes) { return unicode::repaired(bytes) == bytes; }

/// Runs of tokens of bytes: their text if it is UTF-8, else U+FFFD for each byte.
TokenList joined_bytes(const TokenList& tokens) {
  TokenList out;
  std::string bytes;
  const auto flush = [&] {
    if (is_valid_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const auto byte = byte_of_token(token)) {
      bytes += *byte;
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  return out;
}

TokenDecoder strip_decoder(const TokenizerPart& part) {
  const char32_t content = part.character("content");
  const auto start = part.get<std::int64_t>("start"), stop = part.get<std::int64_t>("stop");
  return by_token([=](const std::string& token, std::size_t, std::size_t) {
    const std::u32string all = unicode::decoded(token, "tokenizer: a token");
    std::size_t begin = 0, end = all.size();
    while (begin < all.size() && static_cast<std::int64_t>(begin) < start && all[begin] == content) ++begin;
    while (end > begin && static_cast<std::int64_t>(all.size() - end) < stop && all[end - 1] == content) --end;
    return unicode::encoded(std::u32string_view(all).substr(begin, end - begin));
  });
}

TokenDecoder replace_decoder(const TokenizerPart& part) {
  return by_token([pattern = part.pattern("pattern"), content = part.get<std::string>("content")](
                      const std::string& token, std::size_t, std::size_t) {
    return replaced(token, pattern.matches(token), content);
  });
}

TokenDecoder decoders_in_sequence(const TokenizerPart& part) {
  std::vector<TokenDecoder> all;
  for (const TokenizerPart& each : part.list("decoders")) all.push_back(token_decoder_of(each));
  return [all](TokenList tokens) {
    for (const TokenDecoder& each : all) tokens = each(std::move(tokens));
    return tokens;
  };
}

TokenList decoded_byte_level(const TokenList& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += from_byte_characters(token);
  return {unicode::repaired(bytes)};
}

}  // namespace

TokenDecoder token_decoder_of(const TokenizerPart& part) {
  const std::string type = part.type();
  if (type == "ByteLevel") return decoded_byte_level;
  if (type == "WordPiece") return word_piece_decoder(part);
  if (type == "Metaspace") return metaspace_decoder(part);
  if (type == "BPEDecoder") return byte_pair_decoder(part);
  if (type == "ByteFallback") return joined_bytes;
  if (type == "Fuse") return [](const TokenList& tokens) { return TokenList{all_together(tokens)}; };
  if (type == "Strip") return strip_decoder(part);
  if (type == "Replace") return replace_decoder(part);
  if (type == "Sequence") return decoders_in_sequence(part);
  part.fail_unsupported("decoder",
                        "ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace and "
                        "Sequence");
}

}  // namespace gradus
