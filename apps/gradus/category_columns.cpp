#include "apps/gradus/category_columns.h"

namespace gradus::command {
namespace {

/// Places of columns among the features.
struct ColumnPlaces {
  std::vector<std::int64_t> numbers, words;
  std::vector<std::int64_t> sizes;  // how many words each column has
};

ColumnPlaces places_of(const DataConfig& config, const DataFacts& facts) {
  ColumnPlaces places;
  for (std::size_t i = 0; i < facts.columns.size(); ++i) {
    const auto words = facts.categories.find(facts.columns[i]);
    const bool is_word = config.category_encoding != "integer" && words != facts.categories.end();
    (is_word ? places.words : places.numbers).push_back(static_cast<std::int64_t>(i));
    if (is_word) places.sizes.push_back(std::ssize(words->second));
  }
  return places;
}

Tensor columns_at(const Tensor& x, const std::vector<std::int64_t>& places) {
  return gather(x, from_values(places, Shape{std::ssize(places)}), 1);
}

struct EncodedColumns {
  std::vector<Normalization> normalization;  // of the numbers: one or none
  std::vector<Embedding> embeddings;         // of each column of words, or none: one-hot
  std::vector<std::int64_t> numbers, words, sizes;
  Tensor operator()(const Tensor& x) const {
    Tensors parts;
    if (!numbers.empty()) {
      const Tensor plain = columns_at(x, numbers);
      parts.push_back(normalization.empty() ? plain : normalization[0](plain));
    }
    for (std::size_t i = 0; i < words.size(); ++i) parts.push_back(encoded(x, i));
    return concat(parts, 1);
  }

 private:
  Tensor encoded(const Tensor& x, std::size_t i) const {
    const Tensor word = cast(reshape(columns_at(x, {words[i]}), {-1}), i32);
    if (embeddings.empty()) return one_hot(word, sizes[i]);
    const Tensor is_word = logical_and(greater_equal(word, 0), less(word, sizes[i]));
    return cast(embeddings[i](where(is_word, word, cast(constant(sizes[i]), i32))), f32);
  }
};

}  // namespace

bool encodes_categories(const DataConfig& config, const DataFacts& facts) {
  return !places_of(config, facts).words.empty();
}
bool has_numbers(const DataConfig& config, const DataFacts& facts) { return !places_of(config, facts).numbers.empty(); }

Module category_columns(const DataConfig& config, const DataFacts& facts, bool normalizes) {
  const ColumnPlaces places = places_of(config, facts);
  EncodedColumns columns{.numbers = places.numbers, .words = places.words, .sizes = places.sizes};
  if (normalizes && !places.numbers.empty()) columns.normalization.emplace_back();
  if (config.category_encoding == "embedding")
    for (const std::int64_t size : places.sizes) columns.embeddings.emplace_back(size + 1, config.category_width);
  return Model<EncodedColumns>(std::move(columns));
}

Dataset<2> numbers_of_columns(const Dataset<2>& training, const DataConfig& config, const DataFacts& facts) {
  return training.map([numbers = places_of(config, facts).numbers](Tensor x, Tensor y) {
    return std::pair{columns_at(x, numbers), y};
  });
}

}  // namespace gradus::command
