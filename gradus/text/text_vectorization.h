/// TextVectorization: ids, or rows, of texts: standardized, split, joined to n-grams, looked up. As Keras's.
#pragma once
#include <functional>
#include <initializer_list>
#include "gradus/text/lookup.h"

namespace gradus {

/// The change of a text before it is split. Only ASCII letters become lower case, as in Keras, so that ids agree.
enum class Standardize { none, lower_and_strip_punctuation, lower, strip_punctuation };
/// The parts of a text: between whitespace of ASCII, or characters of Unicode.
enum class Split { none, whitespace, character };

/// Widths of n-grams: an integer n stands for 1 to n, a list for itself.
class NgramWidths {
 public:
  NgramWidths() = default;
  NgramWidths(int n);
  NgramWidths(std::initializer_list<std::int64_t> widths) : widths_(widths) {}
  NgramWidths(std::vector<std::int64_t> widths) : widths_(std::move(widths)) {}
  /// All widths, in the order in which n-grams are listed.
  const std::vector<std::int64_t>& widths() const { return widths_; }

 private:
  std::vector<std::int64_t> widths_;
};

/// Options of TextVectorization.
struct TextVectorizationOptions {
  std::optional<std::int64_t> max_tokens = {};                         // largest number of ids, special tokens included
  Standardize standardize = Standardize::lower_and_strip_punctuation;  // change of the text before it is split
  Split split = Split::whitespace;                                     // parts of a text
  NgramWidths ngrams = {};                                             // none: the parts themselves
  OutputMode output_mode = OutputMode::ids;                            // not one_hot
  std::optional<std::int64_t> output_sequence_length = {};             // with ids: the length of every result
  bool pad_to_max_tokens = false;                                      // rows are max_tokens wide
  std::vector<std::string> vocabulary = {};                            // empty: by adapt() or set_vocabulary()
  std::vector<double> idf_weights = {};                                // of the vocabulary, for tf_idf
  std::function<std::string(std::string)> standardize_by = {};         // in the place of standardize; not saved
  std::function<std::vector<std::string>(std::string)> split_by = {};  // in the place of split; not saved
  static constexpr auto ranges() {
    return std::array{Allowed::within(2, std::int64_t{1} << 31, "max_tokens"),
                      Allowed::not_negative("output_sequence_length"), Allowed::finite("idf_weights")};
  }
};

/// Ids of texts: 0 is padding, 1 a term out of the vocabulary, then terms, the most frequent first. In other modes than
/// ids there is no padding, and 0 is a term out of the vocabulary.
///
///   TextVectorization vectorize({.max_tokens = 20'000, .output_sequence_length = 100});
///   vectorize.adapt(reviews);
///   Dataset<2> ids = reviews.map([&](const Strings& text, Tensor label) { return std::pair{vectorize(text), label};
///   });
///
/// As a field of a Model<Net> it is saved with the model.
class TextVectorization : public detail::SavedText {
 public:
  /// InvalidArgument for options that do not go together.
  explicit TextVectorization(TextVectorizationOptions options);
  /// With the defaults of the options, as a field of a model.
  TextVectorization() : TextVectorization(TextVectorizationOptions()) {}

  /// Texts [...], or [..., 1], -> i64 [..., length], padded with 0 at the end to output_sequence_length, or else to the
  /// longest; or f32 [..., ids] in the form of the OutputMode. Without a split the last dimension of x lists the parts
  /// of a text. InvalidArgument before there is a vocabulary, for text that is no UTF-8, and within a traced function.
  Tensor operator()(const Strings& x) const;

  /// Takes the vocabulary from texts, each one document: terms in the order of descending frequency, then of descending
  /// bytes. InvalidArgument if the options gave a vocabulary.
  void adapt(const Strings& data);
  /// adapt() to the texts of epoch 0, single or in batches.
  template <std::size_t N> void adapt(const TextDataset<N>& data) { adapt_to(data.text()); }

  /// As StringLookup's.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const {
    return lookup_.get_vocabulary(include_special_tokens);
  }
  /// As StringLookup's.
  std::int64_t vocabulary_size() const { return lookup_.vocabulary_size(); }
  /// As StringLookup's.
  void set_vocabulary(const std::vector<std::string>& vocabulary, const std::vector<double>& idf_weights = {}) {
    lookup_.set_vocabulary(vocabulary, idf_weights);
  }
  /// As StringLookup's.
  void load_vocabulary(const std::filesystem::path& file) { lookup_.load_vocabulary(file); }
  /// As StringLookup's.
  void save_vocabulary(const std::filesystem::path& file) const { lookup_.save_vocabulary(file); }
  /// Writes options and vocabulary as JSON. InvalidArgument if the options have functions (standardize_by, split_by),
  /// which no file can hold.
  void save(const std::filesystem::path& file) const;
  /// Reads what save() wrote. DataError for another file, Unavailable if it cannot be read.
  static TextVectorization load(const std::filesystem::path& file);

  // For the rooms of the library.
  std::string_view saved_as() const override { return "vocabulary.json"; }
  std::string saved_text() const override;
  Loading loading(std::string_view saved, const std::string& source) override;

 private:
  void adapt_to(const TextPipeline& data);
  std::vector<std::string> parts_of(const std::string& text) const;
  std::vector<std::string> ngrams_of(std::vector<std::string> parts) const;
  Shape outer_shape(const Shape& shape) const;
  std::vector<std::vector<std::string>> terms_of(const Strings& x) const;
  TextVectorizationOptions options_;
  StringLookup lookup_;
};

}  // namespace gradus
