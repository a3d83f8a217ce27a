#include "gradus/text/text_vectorization.h"
#include <algorithm>
#include "gradus/ops/shape.h"
#include "gradus/text/unicode.h"
#include "gradus/text/vocabulary_file.h"

namespace gradus {
namespace {

constexpr std::string_view layer_name = "TextVectorization";
constexpr std::string_view standardize_names[] = {"", "lower_and_strip_punctuation", "lower", "strip_punctuation"};
constexpr std::string_view split_names[] = {"", "whitespace", "character"};

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_ascii_mark(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string standardized(std::string text, Standardize how) {
  if (how == Standardize::lower || how == Standardize::lower_and_strip_punctuation)
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (how == Standardize::strip_punctuation || how == Standardize::lower_and_strip_punctuation)
    std::erase_if(text, is_ascii_mark);
  return text;
}

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::vector<std::string> parts;
  for (auto begin = text.begin(); (begin = std::find_if_not(begin, text.end(), is_ascii_space)) != text.end();) {
    const auto end = std::find_if(begin, text.end(), is_ascii_space);
    parts.emplace_back(begin, end);
    begin = end;
  }
  return parts;
}

std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < text.size(); i += unicode::length_of(text[i]))
    parts.push_back(text.substr(i, unicode::length_of(text[i])));
  return parts;
}

StringLookupOptions lookup_options(const TextVectorizationOptions& o) {
  return {.max_tokens = o.max_tokens,
          .mask_token = "",
          .vocabulary = o.vocabulary,
          .idf_weights = o.idf_weights,
          .output_mode = o.output_mode,
          .pad_to_max_tokens = o.pad_to_max_tokens};
}

template <class Names>
std::size_t place_of_name(const Names& names, const std::string& name, const std::string& source) {
  const auto at = std::ranges::find(names, name);
  require<DataError>(at != std::end(names), source, ": `", name, "` is no way to standardize or to split a text",
                     name == "a function" ? "; give standardize_by or split_by as the saving program did" : "");
  return static_cast<std::size_t>(at - std::begin(names));
}

nlohmann::ordered_json name_or_null(std::string_view name) {
  return name.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(name);
}

}  // namespace

NgramWidths::NgramWidths(int n) {
  for (int width = 1; width <= n; ++width) widths_.push_back(width);
  require(n > 0, "TextVectorization: ngrams must be positive, got ", n);
}

TextVectorization::TextVectorization(TextVectorizationOptions options)
    : options_(checked_options(layer_name, std::move(options))), lookup_(lookup_options(options_)) {
  const TextVectorizationOptions& o = options_;
  require(o.output_mode != OutputMode::one_hot, layer_name, ": output_mode one_hot is that of single terms: take ",
          "StringLookup; a text gives ids, multi_hot, count or tf_idf");
  require(o.output_mode == OutputMode::ids || !o.output_sequence_length, layer_name, ": output_sequence_length is for ",
          "output_mode ids, which is ", name_of(o.output_mode));
  for (const std::int64_t width : o.ngrams.widths()) check_number(layer_name, "ngrams", Allowed::positive(""), width);
}

std::vector<std::string> TextVectorization::parts_of(const std::string& text) const {
  unicode::check(text, layer_name);
  std::string plain =
      options_.standardize_by ? options_.standardize_by(text) : standardized(text, options_.standardize);
  if (options_.split_by) return options_.split_by(std::move(plain));
  if (options_.split == Split::whitespace) return split_at_spaces(plain);
  if (options_.split == Split::character) {
    if (options_.standardize_by) unicode::check(plain, layer_name);
    return characters_of(plain);
  }
  return {std::move(plain)};
}

/// All n-grams of the first width, then those of the next.
std::vector<std::string> TextVectorization::ngrams_of(std::vector<std::string> parts) const {
  if (options_.ngrams.widths().empty()) return parts;
  std::vector<std::string> grams;
  for (const std::int64_t width : options_.ngrams.widths())
    for (std::size_t i = 0; i + static_cast<std::size_t>(width) <= parts.size(); ++i) {
      std::string gram = parts[i];
      for (std::size_t j = 1; j < static_cast<std::size_t>(width); ++j) gram += ' ' + parts[i + j];
      grams.push_back(std::move(gram));
    }
  return grams;
}

/// The shape of the texts: with a split each string is one, without it the last dimension lists the parts of one.
Shape TextVectorization::outer_shape(const Shape& shape) const {
  Shape outer = shape;
  const bool splits = options_.split != Split::none || options_.split_by;
  require(!splits || shape.rank() < 2 || shape.back() == 1, layer_name, ": the input has the shape ", brackets(shape),
          "; expected texts of one dimension, or a last dimension of 1");
  if (shape.rank() > 1 || (!splits && shape.rank() == 1)) outer.erase(-1);
  return outer;
}

std::vector<std::vector<std::string>> TextVectorization::terms_of(const Strings& x) const {
  const auto texts = static_cast<std::size_t>(outer_shape(x.shape()).size());
  const std::size_t each = texts == 0 ? 0 : x.values().size() / texts;
  std::vector<std::vector<std::string>> terms(texts);
  for (std::size_t i = 0; i < texts; ++i) {
    for (std::size_t j = 0; j < each; ++j)
      for (std::string& part : parts_of(x.values()[i * each + j])) terms[i].push_back(std::move(part));
    terms[i] = ngrams_of(std::move(terms[i]));
  }
  return terms;
}

Tensor TextVectorization::operator()(const Strings& x) const {
  require_no_trace(layer_name);
  lookup_.table().require_set();
  IdRows ids{outer_shape(x.shape()), {}};
  for (const std::vector<std::string>& terms : terms_of(x)) {
    ids.rows.emplace_back();
    for (const std::string& term : terms) ids.rows.back().push_back(lookup_.id_of(term));
  }
  if (options_.output_mode == OutputMode::ids) return padded_ids(ids, options_.output_sequence_length);
  return in_mode(ids, options_.output_mode, lookup_.table().depth(), lookup_.table().weights());
}

void TextVectorization::adapt(const Strings& data) {
  // A list is of documents, also where no split is made.
  const bool is_list = data.shape().rank() == 1;
  TermCounts<std::string> counts;
  for (const auto& terms : terms_of(is_list ? data.reshaped({data.size(), 1}) : data)) counts.add(terms);
  lookup_.set_counts(std::move(counts));
}

void TextVectorization::adapt_to(const TextPipeline& data) {
  require(!data.pipeline().is_endless(), layer_name,
          ": adapt: the data set has no end; .take(n) says how much is read");
  TermCounts<std::string> counts;
  for (const auto reading = data.pipeline().epoch(0).begin(); !reading->at_end(); reading->advance())
    for (const auto& terms : terms_of(unpacked(reading->element()[0]))) counts.add(terms);
  lookup_.set_counts(std::move(counts));
}

namespace {

nlohmann::ordered_json config_with(const IndexTable<std::string>& table, const TextVectorizationOptions& o) {
  nlohmann::ordered_json config = config_of(table);
  config["standardize"] = name_or_null(standardize_names[static_cast<int>(o.standardize)]);
  config["split"] = name_or_null(split_names[static_cast<int>(o.split)]);
  config["ngrams"] = o.ngrams.widths().empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(o.ngrams.widths());
  config["output_sequence_length"] =
      o.output_sequence_length ? nlohmann::ordered_json(*o.output_sequence_length) : nlohmann::ordered_json();
  // Functions stay in the program; a model's file says that there were some.
  if (o.standardize_by) config["standardize"] = "a function";
  if (o.split_by) config["split"] = "a function";
  return config;
}

/// `like`: has the functions that the file does not hold.
TextVectorizationOptions options_in(const TextLayerConfig& config, const TextVectorizationOptions& like) {
  const StringLookupOptions lookup = options_from<StringLookupOptions>(config);
  const auto is_function = [&](const char* key) { return config.get<std::string>(key, "") == "a function"; };
  const auto place_in = [&](const auto& names, const char* key, bool has_function) {
    return has_function && is_function(key) ? 0
                                            : place_of_name(names, config.get<std::string>(key, ""), config.source());
  };
  return {.max_tokens = lookup.max_tokens,
          .standardize = static_cast<Standardize>(
              place_in(standardize_names, "standardize", static_cast<bool>(like.standardize_by))),
          .split = static_cast<Split>(place_in(split_names, "split", static_cast<bool>(like.split_by))),
          .ngrams = config.get<std::vector<std::int64_t>>("ngrams", {}),
          .output_mode = lookup.output_mode,
          .output_sequence_length = config.optional<std::int64_t>("output_sequence_length"),
          .pad_to_max_tokens = lookup.pad_to_max_tokens,
          .standardize_by = is_function("standardize") ? like.standardize_by : nullptr,
          .split_by = is_function("split") ? like.split_by : nullptr};
}

TextVectorization vectorization_from(const TextLayerConfig& config, const TextVectorizationOptions& like) {
  return made_from(config, [&] { return with_vocabulary<TextVectorization>(options_in(config, like), config); });
}

}  // namespace

void TextVectorization::save(const std::filesystem::path& file) const {
  require(!options_.standardize_by && !options_.split_by, layer_name, ": a file does not hold functions of one's own; ",
          "save_vocabulary() writes the terms");
  write_text_layer(file, layer_name, config_with(lookup_.table(), options_));
}
TextVectorization TextVectorization::load(const std::filesystem::path& file) {
  return vectorization_from({file, layer_name}, {});
}

std::string TextVectorization::saved_text() const {
  if (!lookup_.table().is_set()) return {};
  return text_layer_json(layer_name, config_with(lookup_.table(), options_));
}
SavedText::Loading TextVectorization::loading(std::string_view saved, const std::string& source) {
  const TextLayerConfig found(saved, source, layer_name);
  const TextVectorization unset = made_from(found, [&] { return TextVectorization(options_in(found, options_)); });
  return loading_of(*this, config_with(lookup_.table(), options_), config_with(unset.lookup_.table(), unset.options_),
                    [&] { return vectorization_from(found, options_); });
}

}  // namespace gradus
