/// The table behind StringLookup, IntegerLookup and TextVectorization: a vocabulary, with Keras's order of ids: the
/// mask token, places for what is out of the vocabulary, then terms, by default the most frequent first.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/text/category_modes.h"

namespace gradus {

namespace detail::inline rooms {

/// The settings of a table. Key: std::string or std::int64_t.
template <class Key> struct IndexTableSetup {
  std::optional<std::int64_t> max_tokens;
  std::int64_t num_oov_indices;
  std::optional<Key> mask_token;
  Key oov_token;
  bool invert;
  OutputMode output_mode;
  bool pad_to_max_tokens;
};

/// How often terms occur, and in how many documents.
template <class Key> struct TermCounts {
  std::map<Key, std::int64_t> terms, documents_with = {};
  std::int64_t documents = 0;
  /// Counts the terms of one document.
  void add(const std::vector<Key>& document) {
    std::map<Key, std::int64_t> here;
    for (const Key& term : document) ++here[term];
    for (const auto& [term, count] : here) {
      terms[term] += count;
      ++documents_with[term];
    }
    ++documents;
  }
};

template <class Key> class IndexTable {
 public:
  /// Most ids; also most places for what is out of the vocabulary.
  static constexpr std::int64_t most_ids = std::int64_t{1} << 31;
  /// An id that no row counts: of the mask token, where it has no id.
  static constexpr std::int64_t dropped = -1;

  /// `layer` opens errors. InvalidArgument for options that do not go together.
  IndexTable(std::string layer, IndexTableSetup<Key> options) : layer_(std::move(layer)), options_(std::move(options)) {
    const auto& o = options_;
    require(!o.pad_to_max_tokens || o.max_tokens, layer_, ": pad_to_max_tokens needs max_tokens, to which it pads");
    require(!o.invert || o.output_mode == OutputMode::ids, layer_, ": invert gives terms for ids, so output_mode has ",
            "to be ids, got ", name_of(o.output_mode));
  }

  /// The terms, with or without the special tokens before them. `weights` with tf_idf alone.
  void set(const std::vector<Key>& vocabulary, const std::vector<double>& weights) {
    require(!vocabulary.empty(), layer_, ": the vocabulary is empty");
    require(weights.empty() || uses_weights(), layer_, ": idf_weights are for output_mode tf_idf, which is ",
            name_of(options_.output_mode));
    require(!weights.empty() || !uses_weights(), layer_, ": with output_mode tf_idf a vocabulary needs idf_weights");
    require(weights.empty() || weights.size() == vocabulary.size(), layer_, ": ", weights.size(), " idf_weights for ",
            vocabulary.size(), " terms");
    const bool may_have_special = first_id() > 0 && first_id() <= std::ssize(vocabulary);
    const std::vector<Key> special = may_have_special ? special_tokens() : std::vector<Key>();
    const bool has_special = may_have_special && std::equal(special.begin(), special.end(), vocabulary.begin());
    const auto first = vocabulary.begin() + (has_special ? std::ssize(special) : 0);
    take({first, vocabulary.end()});
    if (uses_weights()) take_weights(weights, has_special ? 0 : static_cast<std::size_t>(first_id()));
  }

  /// Terms by their frequency; of equal frequency the greater one first, as Keras has it.
  void set(TermCounts<Key> counts) {
    if (options_.mask_token) counts.terms.erase(*options_.mask_token);
    counts.terms.erase(options_.oov_token);
    std::vector<std::pair<Key, std::int64_t>> sorted(counts.terms.rbegin(), counts.terms.rend());
    std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& term) { return term.second; });
    if (options_.max_tokens) {
      const std::int64_t most = std::max<std::int64_t>(*options_.max_tokens - first_id(), 0);
      sorted.resize(std::min(sorted.size(), static_cast<std::size_t>(most)));
    }
    std::vector<Key> terms;
    std::vector<double> weights;
    for (auto& [term, count] : sorted) {
      const double with = static_cast<double>(counts.documents_with.at(term));
      weights.push_back(std::log(1 + static_cast<double>(counts.documents) / (1 + with)));
      terms.push_back(std::move(term));
    }
    take(std::move(terms));
    if (uses_weights()) take_weights(weights, static_cast<std::size_t>(first_id()));
  }

  bool is_set() const { return is_set_; }
  const std::string& layer() const { return layer_; }
  const IndexTableSetup<Key>& options() const { return options_; }
  /// The id of the first place for what is out of the vocabulary.
  std::int64_t first_oov() const { return options_.mask_token && options_.output_mode == OutputMode::ids ? 1 : 0; }
  /// The id of the first term.
  std::int64_t first_id() const { return first_oov() + options_.num_oov_indices; }
  /// The number of ids.
  std::int64_t size() const { return first_id() + std::ssize(terms_); }
  /// The width of rows.
  std::int64_t depth() const { return options_.pad_to_max_tokens ? *options_.max_tokens : size(); }
  const std::vector<Key>& terms() const { return terms_; }
  const std::vector<float>& weights() const { return weights_; }
  bool uses_weights() const { return options_.output_mode == OutputMode::tf_idf; }
  /// All terms by their ids.
  std::vector<Key> vocabulary(bool include_special_tokens) const {
    std::vector<Key> all = include_special_tokens ? special_tokens() : std::vector<Key>();
    all.insert(all.end(), terms_.begin(), terms_.end());
    return all;
  }
  void require_set() const { require(is_set_, layer_, ": it has no vocabulary; call adapt(), or give it one"); }

  /// The id of a term. `bucket(n)`: which of n places a term out of the vocabulary takes. OutOfRange if there are none.
  template <class Bucket> std::int64_t id_of(const Key& term, const Bucket& bucket) const {
    if (options_.mask_token && term == *options_.mask_token)
      return options_.output_mode == OutputMode::ids ? 0 : dropped;
    if (const auto known = ids_.find(term); known != ids_.end()) return known->second;
    const std::int64_t places = options_.num_oov_indices;
    require<OutOfRange>(places > 0, layer_, ": `", term,
                        "` is not in the vocabulary, and num_oov_indices is 0; with 1 ", "it has an id");
    return first_oov() + (places == 1 ? 0 : bucket(places));
  }
  /// The term of an id; the oov token for an id that is no term's.
  Key term_of(std::int64_t id) const {
    if (id == 0 && options_.mask_token) return *options_.mask_token;
    const std::int64_t at = id - first_id();
    return at >= 0 && at < std::ssize(terms_) ? terms_[static_cast<std::size_t>(at)] : options_.oov_token;
  }

 private:
  std::vector<Key> special_tokens() const {
    std::vector<Key> special;
    if (first_oov() == 1) special.push_back(*options_.mask_token);
    special.insert(special.end(), static_cast<std::size_t>(options_.num_oov_indices), options_.oov_token);
    return special;
  }
  void check_term(const Key& term) const {
    require(!options_.mask_token || term != *options_.mask_token, layer_, ": the mask token `", term,
            "` stands among the terms of the vocabulary; leave the special tokens out, or put all of them first");
    require(!options_.invert || term != options_.oov_token, layer_, ": the oov token `", term,
            "` stands among the terms of the vocabulary; leave the special tokens out, or put all of them first");
  }
  void take(std::vector<Key> terms) {
    require(first_id() + std::ssize(terms) <= options_.max_tokens.value_or(most_ids), layer_, ": the vocabulary has ",
            first_id() + std::ssize(terms), " ids with its special tokens, max_tokens is ",
            options_.max_tokens.value_or(most_ids));
    std::unordered_map<Key, std::int64_t> ids;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      check_term(terms[i]);
      const bool is_new = ids.emplace(terms[i], first_id() + static_cast<std::int64_t>(i)).second;
      require(is_new, layer_, ": the term `", terms[i], "` stands twice in the vocabulary");
    }
    ids_ = std::move(ids);
    terms_ = std::move(terms);
    is_set_ = true;
  }
  /// `missing`: how many special tokens before the terms have no weight: they take the mean of the others.
  void take_weights(const std::vector<double>& weights, std::size_t missing) {
    double sum = 0;
    for (const double weight : weights) sum += static_cast<float>(weight);
    const double mean = weights.empty() ? 0 : sum / static_cast<double>(weights.size());
    weights_.assign(missing, static_cast<float>(mean));
    for (const double weight : weights) weights_.push_back(static_cast<float>(weight));
  }

  std::string layer_;
  IndexTableSetup<Key> options_;
  std::vector<Key> terms_;
  std::unordered_map<Key, std::int64_t> ids_;
  std::vector<float> weights_;  // by ids
  bool is_set_ = false;
};

}  // namespace detail::inline rooms

}  // namespace gradus
