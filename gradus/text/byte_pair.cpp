/// Byte-pair encoding (Sennrich, Haddow and Birch 2016): characters, of which pairs are merged in the order of a list.
#include <queue>
#include "gradus/text/token_models.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

/// A pair of tokens that may become one.
struct Merge {
  std::int32_t rank, id;  // the place in the list, and the token that it gives
};

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

/// A word as tokens in a list, of which neighbours are merged.
class MergedWord {
 public:
  using Merges = std::unordered_map<std::uint64_t, Merge>;
  explicit MergedWord(const Merges& merges) : merges_(merges) {}
  void add(std::int32_t id) {
    const auto place = static_cast<std::int32_t>(symbols_.size());
    symbols_.push_back({id, place - 1, -1});
    if (place > 0) symbols_[static_cast<std::size_t>(place - 1)].next = place;
  }
  /// The first pair of the list first; of the same pair that at the left.
  void merge_all() {
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) offer(static_cast<std::int32_t>(i));
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      const Merge* merge = merge_at(candidate.place);
      if (merge && merge->id == candidate.id) apply(candidate.place, *merge);
    }
  }
  void take(std::vector<std::int32_t>& ids) const {
    for (const Symbol& symbol : symbols_)
      if (!symbol.is_gone) ids.push_back(symbol.id);
  }

 private:
  struct Symbol {
    std::int32_t id, previous, next;  // places in the list; -1: none
    bool is_gone = false;
  };
  struct Candidate {
    std::int32_t rank, place, id;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  Symbol& at(std::int32_t place) { return symbols_[static_cast<std::size_t>(place)]; }
  const Merge* merge_at(std::int32_t place) {
    if (at(place).is_gone || at(place).next < 0) return nullptr;
    const auto found = merges_.find(key_of(at(place).id, at(at(place).next).id));
    return found == merges_.end() ? nullptr : &found->second;
  }
  void offer(std::int32_t place) {
    if (const Merge* merge = merge_at(place)) queue_.push({merge->rank, place, merge->id});
  }
  void apply(std::int32_t place, const Merge& merge) {
    Symbol& left = at(place);
    Symbol& right = at(left.next);
    left.id = merge.id;
    right.is_gone = true;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = place;
    if (left.previous >= 0) offer(left.previous);
    offer(place);
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

class BytePairModel final : public TokenModel {
 public:
  explicit BytePairModel(const TokenizerPart& part)
      : unknown_(part.get<std::string>("unk_token", "")),
        prefix_(part.get<std::string>("continuing_subword_prefix", "")),
        suffix_(part.get<std::string>("end_of_word_suffix", "")),
        fuses_unknown_(part.get<bool>("fuse_unk", false)),
        falls_back_to_bytes_(part.get<bool>("byte_fallback", false)),
        ignores_merges_(part.get<bool>("ignore_merges", false)) {
    if (part.get<double>("dropout", 0) != 0)
      part.fail("dropout of merges is not supported: ids would differ from call to call; set it to null");
    vocabulary_ = TokenVocabulary::of(part, "vocab");
    std::int32_t rank = 0;
    for (const TokenizerPart& merge : part.list("merges")) add_merge(merge, rank++);
  }
  void add_ids(const std::string& piece, std::vector<std::int32_t>& ids) const override {
    if (piece.empty()) return;
    if (ignores_merges_)
      if (const auto whole = vocabulary_.id_of(piece)) return ids.push_back(*whole);
    MergedWord word(merges_);
    add_characters(piece, word);
    word.merge_all();
    word.take(ids);
  }

 private:
  void add_merge(const TokenizerPart& part, std::int32_t rank) {
    const auto [left, right] = pair_of(part);
    if (!right.starts_with(prefix_) && right.size() < prefix_.size()) part.fail("`", right, "` lacks the prefix");
    const std::int32_t first = id_in(part, left), second = id_in(part, right);
    merges_[key_of(first, second)] = {rank, id_in(part, left + right.substr(prefix_.size()))};
  }
  static std::pair<std::string, std::string> pair_of(const TokenizerPart& part) {
    if (part.json().is_array() && part.json().size() == 2)
      return {TokenizerPart(part.json()[0], part.where()).as<std::string>(),
              TokenizerPart(part.json()[1], part.where()).as<std::string>()};
    const auto both = part.as<std::string>();
    const std::size_t space = both.find(' ');
    if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
      part.fail("expected two tokens with a space between them, found `", both, "`");
    return {both.substr(0, space), both.substr(space + 1)};
  }
  std::int32_t id_in(const TokenizerPart& part, const std::string& token) const {
    const auto id = vocabulary_.id_of(token);
    if (!id) part.fail("the token `", token, "` of this merge is not in the vocabulary");
    return *id;
  }

  void add_characters(const std::string& piece, MergedWord& word) const {
    bool has_unknown = false;  // one that waits, since those behind it may be fused with it
    for (std::size_t i = 0; i < piece.size();) {
      const std::size_t bytes = unicode::length_of(piece[i]);
      std::string character = piece.substr(i, bytes);
      if (i > 0) character.insert(0, prefix_);
      i += bytes;
      if (i >= piece.size()) character += suffix_;
      if (const auto id = vocabulary_.id_of(character)) {
        if (std::exchange(has_unknown, false)) word.add(unknown());
        word.add(*id);
        continue;
      }
      if (falls_back_to_bytes_)
        if (const auto all = vocabulary_.ids_of_bytes(character)) {
          for (const std::int32_t id : *all) word.add(id);
          continue;
        }
      if (unknown_.empty()) continue;
      if (has_unknown && !fuses_unknown_) word.add(unknown());
      has_unknown = true;
    }
    if (has_unknown) word.add(unknown());
  }
  std::int32_t unknown() const {
    const auto id = vocabulary_.id_of(unknown_);
    require<DataError>(id.has_value(), "tokenizer: a character is unknown, and its unk_token `", unknown_,
                       "` is not in the vocabulary");
    return *id;
  }

  const std::string unknown_, prefix_, suffix_;
  const bool fuses_unknown_, falls_back_to_bytes_, ignores_merges_;
  MergedWord::Merges merges_;
};

}  // namespace

std::unique_ptr<const TokenModel> byte_pair_model(const TokenizerPart& part) {
  return std::make_unique<BytePairModel>(part);
}

}  // namespace gradus
