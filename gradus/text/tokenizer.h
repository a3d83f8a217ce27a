/// Tokenizer: ids of texts by a tokenizer.json of Hugging Face's tokenizers, with the ids of that library.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/strings.h"
#include "gradus/text/saved_text.h"
#include "gradus/text/text_encoding.h"

namespace gradus {

/// The side of truncation or padding.
enum class TokenSide { left, right };
/// The text of a pair that is truncated.
enum class TruncationStrategy { longest_first, only_first, only_second };

/// How encodings are cut off.
struct TruncationOptions {
  std::int64_t max_length;                                          // most tokens, special ones included
  TruncationStrategy strategy = TruncationStrategy::longest_first;  // the text of a pair that is truncated
  TokenSide direction = TokenSide::right;                           // the side at which tokens are removed
  static constexpr auto ranges() { return std::array{Allowed::positive("max_length")}; }
};
/// Padding of the encodings of a batch.
struct TokenPaddingOptions {
  std::optional<std::int64_t> length = {};              // none: that of the longest in the batch
  std::optional<std::int64_t> pad_to_multiple_of = {};  // the length is rounded up
  TokenSide direction = TokenSide::right;               // the side at which tokens are added
  std::int32_t pad_id = 0, pad_type_id = 0;             // their id and their type
  std::string pad_token = "[PAD]";                      // their text
  static constexpr auto ranges() {
    return std::array{Allowed::within(0, 1 << 24, "length pad_to_multiple_of"),
                      Allowed::not_negative("pad_id pad_type_id")};
  }
};

/// Encodings of a batch as tensors, i64 [batch, length].
struct TokenTensors {
  Tensor ids, type_ids, attention_mask;  // as in TextEncoding
};

/// A tokenizer: a value, which shares its tables with its copies and may be used by several threads at once. Texts have
/// to be UTF-8: InvalidArgument names the first byte that is not.
///
///   const Tokenizer tokenizer = Tokenizer::from_file("tokenizer.json");
///   tokenizer.encode("Hello, world").ids
///
/// As a field of a Model<Net> it is saved with the model.
class Tokenizer : public detail::SavedText {
 public:
  /// Without tables, for a model whose file brings them. Using it before is an InvalidArgument.
  Tokenizer() = default;
  /// Reads a tokenizer.json: models BPE, WordPiece, Unigram and WordLevel, with normalizers, pre-tokenizers, added
  /// tokens, post-processors, truncation, padding and decoders. DataError names the part of the file that is wrong or
  /// not supported; Unavailable if it cannot be read.
  static Tokenizer from_file(const std::filesystem::path& file);
  /// The same from its text; `source` stands for the file in messages.
  static Tokenizer from_json(std::string_view json, std::string_view source);
  /// Writes a tokenizer.json with the present truncation and padding. The file appears whole or not at all.
  void save(const std::filesystem::path& file) const;

  /// The tokens of a text, truncated and padded, as a batch of one, if these are enabled. ResourceExhausted if a
  /// pattern takes too many steps. DataError for an unknown piece of text if the file has no token for unknown ones.
  TextEncoding encode(std::string_view text, bool add_special_tokens = true) const;
  /// The tokens of a pair of texts.
  TextEncoding encode(std::string_view text, std::string_view pair, bool add_special_tokens = true) const;
  TextEncoding encode(std::string_view text, const char* pair, bool add_special_tokens = true) const {
    return encode(text, std::string_view(pair), add_special_tokens);
  }
  /// All texts, padded to one length if padding is enabled.
  std::vector<TextEncoding> encode_batch(const Strings& texts, bool add_special_tokens = true) const;
  /// encode_batch() as tensors. If padding is not enabled, shorter ones are padded at the right with the id 0.
  TokenTensors encode_tensors(const Strings& texts, bool add_special_tokens = true) const;
  /// The ids alone, i64 [..., length], for the map of a data set of text. InvalidArgument within a traced function.
  Tensor operator()(const Strings& texts) const;
  /// The text of ids; ids without a token are left out.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special_tokens = true) const {
    return decode(std::span<const std::int32_t>(ids), skip_special_tokens);
  }
  /// decode() of each row of integers [..., length].
  Strings decode(const Tensor& ids, bool skip_special_tokens = true) const;

  /// The id of a token, if it has one.
  std::optional<std::int32_t> token_to_id(const std::string& token) const;
  /// The token of an id, if there is one.
  std::optional<std::string> id_to_token(std::int32_t id) const;
  /// The number of tokens, with or without the added tokens.
  std::int64_t get_vocab_size(bool with_added_tokens = true) const;

  /// Truncates encodings from now on. InvalidArgument unless max_length is positive.
  void enable_truncation(const TruncationOptions& options);
  /// Ends truncation.
  void no_truncation() { truncation_.reset(); }
  /// Pads encodings from now on. InvalidArgument for numbers out of range.
  void enable_padding(const TokenPaddingOptions& options = {});
  /// Ends padding.
  void no_padding() { padding_.reset(); }
  /// The options of truncation; empty if it is not enabled.
  const std::optional<TruncationOptions>& truncation() const { return truncation_; }
  /// The options of padding; empty if it is not enabled.
  const std::optional<TokenPaddingOptions>& padding() const { return padding_; }

  // For the rooms of the library.
  std::string_view saved_as() const override { return "tokenizer.json"; }
  std::string saved_text() const override;
  Loading loading(std::string_view saved, const std::string& source) override;

 private:
  struct Parts;
  const Parts& parts() const;
  TextEncoding tokens_of(std::string_view text) const;
  TextEncoding finished(std::vector<TextEncoding> texts, bool add_special_tokens) const;
  void truncate(std::vector<TextEncoding>& texts, std::int64_t most) const;
  std::shared_ptr<const Parts> parts_;
  std::optional<TruncationOptions> truncation_;
  std::optional<TokenPaddingOptions> padding_;
};

}  // namespace gradus
