/// Lookups: numbers for strings and for integers, by a vocabulary or by a hash. Names, defaults and the order of ids
/// are Keras's. They run on the host, where strings live: in the map of a data set of text, or before a model is
/// called.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/text_dataset.h"
#include "gradus/text/category_modes.h"
#include "gradus/text/index_table.h"
#include "gradus/text/saved_text.h"

namespace gradus {

/// Options of StringLookup.
struct StringLookupOptions {
  std::optional<std::int64_t> max_tokens = {};  // largest number of ids, special tokens included
  std::int64_t num_oov_indices = 1;             // ids for terms out of the vocabulary; a hash chooses among several
  std::optional<std::string> mask_token = {};   // id 0; in other modes than ids it is left out
  std::string oov_token = "[UNK]";              // entry of the vocabulary for those ids
  std::vector<std::string> vocabulary = {};     // empty: by adapt() or set_vocabulary()
  std::vector<double> idf_weights = {};         // of the vocabulary, for tf_idf
  bool invert = false;                          // terms for ids
  OutputMode output_mode = OutputMode::ids;     // the form of results
  bool pad_to_max_tokens = false;               // rows are max_tokens wide
  static constexpr auto ranges() {
    return std::array{Allowed::within(2, std::int64_t{1} << 31, "max_tokens"),
                      Allowed::within(0, 1 << 30, "num_oov_indices"), Allowed::finite("idf_weights")};
  }
};

/// Ids of strings. A vocabulary holds UTF-8: InvalidArgument for a term that is not UTF-8. As a field of a Model<Net>
/// it is saved with the model.
class StringLookup : public detail::SavedText {
 public:
  /// InvalidArgument for options that do not go together.
  explicit StringLookup(StringLookupOptions options);
  /// With the defaults of the options, as a field of a model.
  StringLookup() : StringLookup(StringLookupOptions()) {}

  /// Strings [...] -> i64 [...], or rows of f32 in the form of the OutputMode. InvalidArgument before there is a
  /// vocabulary, and within a traced function; OutOfRange for a term without an id if num_oov_indices is 0.
  Tensor operator()(const Strings& x) const;
  /// With invert: integers [...] -> the terms of these ids.
  Strings operator()(const Tensor& ids) const;

  /// Takes the vocabulary from data: terms in the order of descending frequency, then of descending bytes. Data [n] are
  /// n documents of one term each; [n, terms] are n documents. InvalidArgument if the options gave a vocabulary.
  void adapt(const Strings& data);
  /// adapt() to the strings of epoch 0. An element of one dimension is one document, one of two is a batch of them.
  template <std::size_t N> void adapt(const TextDataset<N>& data) { adapt_to(data.text()); }

  /// The terms by their ids.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const {
    return table_.vocabulary(include_special_tokens);
  }
  /// The number of ids.
  std::int64_t vocabulary_size() const { return table_.size(); }
  /// Terms with or without the special tokens before them; idf_weights with tf_idf alone.
  void set_vocabulary(const std::vector<std::string>& vocabulary, const std::vector<double>& idf_weights = {});
  /// set_vocabulary() from a file of one term a line, as Keras's models have it. Unavailable if it cannot be read.
  void load_vocabulary(const std::filesystem::path& file);
  /// Writes such a file. InvalidArgument for a term with a line break.
  void save_vocabulary(const std::filesystem::path& file) const;

  /// Writes options and vocabulary as JSON: class_name and config, with Keras's names. The file appears whole or not at
  /// all.
  void save(const std::filesystem::path& file) const;
  /// Reads what save() wrote. DataError for another file, Unavailable if it cannot be read.
  static StringLookup load(const std::filesystem::path& file);

  // For the rooms of the library.
  const detail::IndexTable<std::string>& table() const { return table_; }
  /// Counts documents, and takes the vocabulary from counts.
  void set_counts(detail::TermCounts<std::string> counts);
  /// The id of a term.
  std::int64_t id_of(const std::string& term) const;
  std::string_view saved_as() const override { return "vocabulary.json"; }
  std::string saved_text() const override;
  Loading loading(std::string_view saved, const std::string& source) override;

 private:
  void adapt_to(const TextPipeline& data);
  bool has_given_vocabulary_;
  detail::IndexTable<std::string> table_;
};

/// Options of IntegerLookup.
struct IntegerLookupOptions {
  std::optional<std::int64_t> max_tokens = {};  // as in StringLookupOptions
  std::int64_t num_oov_indices = 1;             // as in StringLookupOptions; the integer modulo their number chooses
  std::optional<std::int64_t> mask_token = {};  // id 0; in other modes than ids it is left out
  std::int64_t oov_token = -1;                  // entry of the vocabulary for those ids
  std::vector<std::int64_t> vocabulary = {};    // empty: by adapt() or set_vocabulary()
  std::vector<double> idf_weights = {};         // of the vocabulary, for tf_idf
  bool invert = false;                          // terms for ids
  OutputMode output_mode = OutputMode::ids;     // the form of results
  bool pad_to_max_tokens = false;               // rows are max_tokens wide
  static constexpr auto ranges() {
    return std::array{Allowed::within(2, std::int64_t{1} << 31, "max_tokens"),
                      Allowed::within(0, 1 << 30, "num_oov_indices"), Allowed::any("mask_token oov_token vocabulary"),
                      Allowed::finite("idf_weights")};
  }
};

/// Ids of integers. It consists of ops, so it may be traced, in a map or in a function. As a field of a Model<Net> it
/// is saved with the model.
class IntegerLookup : public detail::SavedText {
 public:
  /// InvalidArgument for options that do not go together.
  explicit IntegerLookup(IntegerLookupOptions options);
  /// With the defaults of the options, as a field of a model.
  IntegerLookup() : IntegerLookup(IntegerLookupOptions()) {}
  /// Integers [...] -> i64 [...], or rows of f32 in the form of the OutputMode; with invert, ids -> terms.
  /// InvalidArgument before there is a vocabulary. OutOfRange, within a function when the value is observed, for an
  /// integer without an id if num_oov_indices is 0.
  Tensor operator()(const Tensor& x) const;
  /// As StringLookup's.
  void adapt(const Tensor& data);
  template <std::size_t N> void adapt(const Dataset<N>& data) { adapt_to(data.pipeline()); }
  /// The terms by their ids.
  std::vector<std::int64_t> get_vocabulary(bool include_special_tokens = true) const {
    return table_.vocabulary(include_special_tokens);
  }
  /// The number of ids.
  std::int64_t vocabulary_size() const { return table_.size(); }
  /// As StringLookup's.
  void set_vocabulary(const std::vector<std::int64_t>& vocabulary, const std::vector<double>& idf_weights = {});
  /// As StringLookup's.
  void save(const std::filesystem::path& file) const;
  /// As StringLookup's.
  static IntegerLookup load(const std::filesystem::path& file);

  // For the rooms of the library.
  std::string_view saved_as() const override { return "vocabulary.json"; }
  std::string saved_text() const override;
  Loading loading(std::string_view saved, const std::string& source) override;

 private:
  void adapt_to(const Pipeline& data);
  Tensor ids_of(const Tensor& x) const;
  Tensor terms_of(const Tensor& ids) const;
  void make_tensors();
  bool has_given_vocabulary_;
  detail::IndexTable<std::int64_t> table_;
  // Of the table, made once for all calls.
  Tensor sorted_terms_, ids_of_sorted_;  // i64 [terms]
  Tensor terms_by_id_;                   // with invert: i64 [ids + 1], the last for ids without a term
  Tensor weights_;                       // with tf_idf: f32, of the ids without padding
};

/// Options of Hashing.
struct HashingOptions {
  std::optional<std::string> mask_value = {};             // alone in bin 0; for integers, their decimal digits
  std::optional<std::array<std::uint64_t, 2>> salt = {};  // SipHash with this key in place of FarmHash
  OutputMode output_mode = OutputMode::ids;               // not tf_idf
};

/// Bins of strings and integers by a hash, without a vocabulary: FarmHash's Fingerprint64, or SipHash with a salt, both
/// as in TensorFlow. A salt of one number is {salt, salt}.
class Hashing {
 public:
  /// InvalidArgument unless num_bins is positive.
  explicit Hashing(std::int64_t num_bins, HashingOptions options = {});
  /// Strings [...] -> i64 [...], or rows of f32 in the form of the OutputMode. InvalidArgument within a traced
  /// function.
  Tensor operator()(const Strings& x) const;
  /// Integers by their decimal digits; floating numbers are truncated before.
  Tensor operator()(const Tensor& x) const;

 private:
  std::int64_t bin_of(std::string_view value) const;
  Tensor in_bins(const Shape& shape, const std::vector<std::int64_t>& bins) const;
  std::int64_t num_bins_;
  HashingOptions options_;
};

}  // namespace gradus
