/// Added tokens of a tokenizer: texts that are taken out whole before anything else is done, such as special tokens.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
#include "gradus/text/normalizers.h"
#include "gradus/text/pre_tokenizers.h"
#include "gradus/text/prefix_table.h"
#include "gradus/text/token_models.h"

namespace gradus {

/// A part of a text: an added token, or a piece that is not looked at yet.
struct MarkedPiece {
  std::optional<std::int32_t> id;
  TextPiece piece;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  /// Reads the added tokens of a tokenizer.json. A token that the model has keeps the model's id.
  AddedTokens(const TokenizerPart& file, const TokenVocabulary& model, const Normalizer& normalizer);

  /// The text taken apart: tokens of the text as it is, then, normalized, those of normalized text.
  std::vector<MarkedPiece> taken_out(const std::string& text, const Normalizer& normalizer) const;
  const TokenVocabulary& vocabulary() const { return vocabulary_; }
  /// True if a token is special: decoding may leave it out.
  bool is_special(const std::string& token) const;

 private:
  struct Token {
    std::int32_t id;
    std::string content;
    bool single_word, strips_left, strips_right, is_normalized, is_special;
  };
  /// Tokens that are looked for at once; numbers are places in tokens_.
  std::vector<MarkedPiece> split(const TextPiece& piece, const PrefixTable& texts) const;
  std::vector<Token> tokens_;
  PrefixTable as_they_are_, normalized_;
  std::unordered_set<std::string> special_;
  TokenVocabulary vocabulary_;
};

}  // namespace gradus
