/// Models of tokenizers: the ids of a piece of text. Byte-pair encoding, WordPiece, unigrams, whole words.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include "gradus/text/tokenizer_json.h"

namespace gradus {

/// Tokens by their ids and back.
class TokenVocabulary {
 public:
  /// The object of tokens and ids of a key. DataError for an id that occurs twice.
  static TokenVocabulary of(const TokenizerPart& part, const char* key);
  /// A later token with the same text takes its place. `shown`: the text that token_of() gives.
  void add(const std::string& token, std::int32_t id) { add(token, id, token); }
  void add(const std::string& token, std::int32_t id, const std::string& shown);
  std::optional<std::int32_t> id_of(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string* token_of(std::int32_t id) const {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? nullptr : &found->second;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  const std::unordered_map<std::string, std::int32_t>& ids() const { return ids_; }
  /// The ids of the bytes of a text, as tokens "<0x41>"; empty if one has none.
  std::optional<std::vector<std::int32_t>> ids_of_bytes(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string> tokens_;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the ids of a piece, which is UTF-8. DataError if the file lacks the token for what is unknown.
  virtual void add_ids(const std::string& piece, std::vector<std::int32_t>& ids) const = 0;
  const TokenVocabulary& vocabulary() const { return vocabulary_; }

 protected:
  TokenVocabulary vocabulary_;
};

/// The model of a tokenizer.json. DataError names one that is not supported.
std::unique_ptr<const TokenModel> token_model_of(const TokenizerPart& part);
// By kind.
std::unique_ptr<const TokenModel> byte_pair_model(const TokenizerPart& part);
std::unique_ptr<const TokenModel> unigram_model(const TokenizerPart& part);

}  // namespace gradus
