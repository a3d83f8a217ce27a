/// Unigrams (Kudo 2018): of all ways to write a piece as tokens that of the greatest probability, by Viterbi's
/// algorithm.
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/text/prefix_table.h"
#include "gradus/text/token_models.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

/// How much less likely an unknown character is than the least likely token.
constexpr double unknown_penalty = 10;

class UnigramModel final : public TokenModel {
 public:
  explicit UnigramModel(const TokenizerPart& part) : falls_back_to_bytes_(part.get<bool>("byte_fallback", false)) {
    std::vector<std::pair<std::string, std::int32_t>> texts;
    for (const TokenizerPart& entry : part.list("vocab")) add_token(entry);
    if (part.has("unk_id")) {
      unknown_ = part.id("unk_id");
      if (*unknown_ >= std::ssize(scores_))
        part.fail("unk_id is ", *unknown_, ", but there are ", scores_.size(), " tokens");
    }
    for (const auto& [token, id] : vocabulary_.ids())
      if (!token.empty()) texts.emplace_back(token, id);
    tokens_ = PrefixTable(std::move(texts));
    const double least = scores_.empty() ? 0 : *std::ranges::min_element(scores_);
    unknown_score_ = least - unknown_penalty;
  }
  void add_ids(const std::string& piece, std::vector<std::int32_t>& ids) const override {
    for (const std::string& token : best_path(piece)) add_token_ids(token, ids);
  }

 private:
  struct Node {
    double score = 0;  // of the best path to here
    std::int64_t begin = -1;
    std::int32_t id = 0;
  };

  void add_token(const TokenizerPart& entry) {
    if (!entry.json().is_array() || entry.json().size() != 2) entry.fail("expected a token and its score");
    const auto token = TokenizerPart(entry.json()[0], entry.where()).as<std::string>();
    const auto score = TokenizerPart(entry.json()[1], entry.where()).as<double>();
    if (!std::isfinite(score)) entry.fail("the score of `", token, "` is ", score);
    vocabulary_.add(token, static_cast<std::int32_t>(scores_.size()));
    scores_.push_back(score);
  }
  std::int32_t unknown() const {
    require<DataError>(unknown_.has_value(), "tokenizer: a character is unknown, and the unigram model has no unk_id");
    return *unknown_;
  }

  std::vector<Node> nodes_of(const std::string& piece) const {
    std::vector<Node> nodes(piece.size() + 1);
    for (std::size_t at = 0; at < piece.size();) {
      const double till_here = nodes[at].score;
      const std::size_t bytes = unicode::length_of(piece[at]);
      bool has_single = false;
      const auto offer = [&](std::size_t length, std::int32_t id, double score) {
        Node& node = nodes[at + length];
        if (node.begin < 0 || score > node.score) node = {score, static_cast<std::int64_t>(at), id};
      };
      tokens_.for_each_prefix(std::string_view(piece).substr(at), [&](std::size_t length, std::int32_t id) {
        offer(length, id, scores_[static_cast<std::size_t>(id)] + till_here);
        has_single |= length == bytes;
      });
      if (!has_single) offer(bytes, unknown(), unknown_score_ + till_here);
      at += bytes;
    }
    return nodes;
  }
  /// Unknown tokens that follow each other are one.
  std::vector<std::string> best_path(const std::string& piece) const {
    const std::vector<Node> nodes = nodes_of(piece);
    std::vector<std::pair<std::size_t, std::size_t>> path;  // [begin, end), from the last one on
    bool joins = false;
    for (std::size_t end = piece.size(); end > 0; end = static_cast<std::size_t>(nodes[end].begin)) {
      const auto begin = static_cast<std::size_t>(nodes[end].begin);
      const bool is_unknown = unknown_ && nodes[end].id == *unknown_;
      if (is_unknown && joins) path.back().first = begin;
      else path.emplace_back(begin, end);
      joins = is_unknown;
    }
    std::vector<std::string> tokens;
    for (auto part = path.rbegin(); part != path.rend(); ++part)
      tokens.push_back(piece.substr(part->first, part->second - part->first));
    return tokens;
  }
  void add_token_ids(const std::string& token, std::vector<std::int32_t>& ids) const {
    if (const auto id = vocabulary_.id_of(token)) return ids.push_back(*id);
    if (falls_back_to_bytes_)
      if (const auto all = vocabulary_.ids_of_bytes(token)) {
        ids.insert(ids.end(), all->begin(), all->end());
        return;
      }
    ids.push_back(unknown());
  }

  const bool falls_back_to_bytes_;
  std::vector<double> scores_;  // by id
  std::optional<std::int32_t> unknown_;
  double unknown_score_ = 0;
  PrefixTable tokens_;
};

}  // namespace

std::unique_ptr<const TokenModel> unigram_model(const TokenizerPart& part) {
  return std::make_unique<UnigramModel>(part);
}

}  // namespace gradus
