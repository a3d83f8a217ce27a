#include "gradus/text/token_models.h"
#include <array>
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

constexpr std::string_view hexadecimal_digits = "0123456789ABCDEF";

/// The id of the token that stands for what is unknown.
std::int32_t unknown_id(const TokenVocabulary& vocabulary, const std::string& token) {
  const std::optional<std::int32_t> id = vocabulary.id_of(token);
  require<DataError>(id.has_value(), "tokenizer: a piece of the text is unknown, and its unk_token `", token,
                     "` is not in the vocabulary");
  return *id;
}

/// The longest token that the rest of a word begins with, again and again (Wu et al. 2016).
class WordPieceModel final : public TokenModel {
 public:
  explicit WordPieceModel(const TokenizerPart& part)
      : unknown_(part.get<std::string>("unk_token", "[UNK]")),
        prefix_(part.get<std::string>("continuing_subword_prefix", "##")),
        most_characters_(part.get<std::int64_t>("max_input_chars_per_word", 100)) {
    vocabulary_ = TokenVocabulary::of(part, "vocab");
    for (const auto& [token, id] : vocabulary_.ids()) longest_ = std::max(longest_, token.size());
  }
  void add_ids(const std::string& piece, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    if (is_too_long(piece) || !add_known(piece, ids)) {
      ids.resize(before);
      ids.push_back(unknown_id(vocabulary_, unknown_));
    }
  }

 private:
  bool is_too_long(const std::string& piece) const {
    return static_cast<std::int64_t>(unicode::decoded(piece, "tokenizer").size()) > most_characters_;
  }
  bool add_known(const std::string& piece, std::vector<std::int32_t>& ids) const {
    for (std::size_t begin = 0; begin < piece.size();) {
      std::size_t end = std::min(piece.size(), begin + longest_);
      while (end < piece.size() && unicode::is_inside(piece[end])) --end;
      std::optional<std::int32_t> id;
      while (end > begin && !(id = id_of(piece, begin, end))) {
        --end;
        while (end > begin && unicode::is_inside(piece[end])) --end;
      }
      if (!id) return false;
      ids.push_back(*id);
      begin = end;
    }
    return true;
  }
  std::optional<std::int32_t> id_of(const std::string& piece, std::size_t begin, std::size_t end) const {
    const std::string part = piece.substr(begin, end - begin);
    return vocabulary_.id_of(begin > 0 ? prefix_ + part : part);
  }
  const std::string unknown_, prefix_;
  const std::int64_t most_characters_;
  std::size_t longest_ = 0;  // bytes of a token
};

class WordLevelModel final : public TokenModel {
 public:
  explicit WordLevelModel(const TokenizerPart& part) : unknown_(part.get<std::string>("unk_token", "<unk>")) {
    vocabulary_ = TokenVocabulary::of(part, "vocab");
  }
  void add_ids(const std::string& piece, std::vector<std::int32_t>& ids) const override {
    const std::optional<std::int32_t> id = vocabulary_.id_of(piece);
    ids.push_back(id ? *id : unknown_id(vocabulary_, unknown_));
  }

 private:
  const std::string unknown_;
};

/// The kind of a model; older files leave it to what the model has.
std::string kind_of_model(const TokenizerPart& part) {
  if (part.has("type")) return part.type();
  if (part.has("vocab") && part.at("vocab").json().is_array()) return "Unigram";
  if (part.has("merges")) return "BPE";
  return part.has("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

TokenVocabulary TokenVocabulary::of(const TokenizerPart& part, const char* key) {
  const TokenizerPart entries = part.at(key);
  if (!entries.json().is_object())
    entries.fail("expected an object of tokens and ids, found ", entries.json().type_name());
  TokenVocabulary vocabulary;
  for (const auto& [token, id] : entries.json().items()) {
    const TokenizerPart entry(id, text(entries.where(), ".", token));
    const std::int32_t number = entry.as_id();
    if (vocabulary.token_of(number))
      entry.fail("the id ", number, " is that of `", *vocabulary.token_of(number), "`, too");
    vocabulary.add(token, number);
  }
  return vocabulary;
}

void TokenVocabulary::add(const std::string& token, std::int32_t id, const std::string& shown) {
  ids_[token] = id;
  tokens_[id] = shown;
}

std::optional<std::vector<std::int32_t>> TokenVocabulary::ids_of_bytes(std::string_view bytes) const {
  std::vector<std::int32_t> ids;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const std::optional<std::int32_t> id =
        id_of(std::string("<0x") + hexadecimal_digits[byte >> 4] + hexadecimal_digits[byte & 15] + '>');
    if (!id) return {};
    ids.push_back(*id);
  }
  return ids;
}

std::unique_ptr<const TokenModel> token_model_of(const TokenizerPart& part) {
  const std::string kind = kind_of_model(part);
  if (kind == "BPE") return byte_pair_model(part);
  if (kind == "WordPiece") return std::make_unique<WordPieceModel>(part);
  if (kind == "Unigram") return unigram_model(part);
  if (kind == "WordLevel") return std::make_unique<WordLevelModel>(part);
  part.fail_unsupported("model", "BPE, WordPiece, Unigram and WordLevel");
}

}  // namespace gradus
