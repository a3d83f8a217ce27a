/// Options and vocabularies of text layers as files: JSON of class_name and config, as Keras names them, and lines.
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/text/index_table.h"
#include "gradus/text/saved_text.h"

namespace gradus {

/// Most bytes of a file of a vocabulary or a tokenizer: 1 GiB.
inline constexpr std::int64_t most_vocabulary_bytes = std::int64_t{1} << 30;

/// The text of a file. DataError for a file of more than most_vocabulary_bytes, Unavailable if it cannot be read.
std::string read_vocabulary_text(const std::filesystem::path& file);

/// {"class_name": ..., "config": ...} as text.
std::string text_layer_json(std::string_view class_name, nlohmann::ordered_json config);
/// Writes text_layer_json(). The file appears whole or not at all.
void write_text_layer(const std::filesystem::path& file, std::string_view class_name, nlohmann::ordered_json config);

/// The first option, none of which is a vocabulary, by which two configs differ, in words; empty: they are the same.
std::string difference_of_options(const nlohmann::ordered_json& own, const nlohmann::ordered_json& found);

/// `layer`, whose config is `own`, becomes what `read` makes of a file, if the options in the file, `found`, are the
/// same. A file with others is not read further: they may ask for any amount of memory.
template <class Layer, class Read>
SavedText::Loading loading_of(Layer& layer, const nlohmann::ordered_json& own, const nlohmann::ordered_json& found,
                              const Read& read) {
  std::string unlike = difference_of_options(own, found);
  if (!unlike.empty()) return {std::move(unlike), {}};
  const auto kept = std::make_shared<Layer>(read());
  return {{}, [&layer, kept] { layer = std::move(*kept); }};
}

/// The config of such a file, read key by key. DataError names file and key.
class TextLayerConfig {
 public:
  /// DataError if the file is of another class.
  TextLayerConfig(const std::filesystem::path& file, std::string_view class_name)
      : TextLayerConfig(read_vocabulary_text(file), file.string(), class_name) {}
  /// The same from its text; `source` stands for the file in messages.
  TextLayerConfig(std::string_view json, std::string source, std::string_view class_name);
  const std::string& source() const { return source_; }
  /// The value of a key; `otherwise` if it is not there or null. Instances: bool, std::int64_t, std::string, vectors of
  /// strings, integers and floating numbers.
  template <class T> T get(const char* key, T otherwise) const;
  /// None if it is not there or null.
  template <class T> std::optional<T> optional(const char* key) const {
    return has(key) ? std::optional<T>(get<T>(key, T{})) : std::nullopt;
  }
  bool has(const char* key) const { return config_.contains(key) && !config_[key].is_null(); }

 private:
  std::string source_;
  nlohmann::json config_;
};

/// The entries that tables have in common.
template <class Key> nlohmann::ordered_json config_of(const IndexTable<Key>& table) {
  const auto& o = table.options();
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json config{{"max_tokens", or_null(o.max_tokens)},
                                {"num_oov_indices", o.num_oov_indices},
                                {"mask_token", or_null(o.mask_token)},
                                {"oov_token", o.oov_token},
                                {"invert", o.invert},
                                {"output_mode", name_of(o.output_mode)},
                                {"pad_to_max_tokens", o.pad_to_max_tokens}};
  config["vocabulary"] = table.is_set() ? nlohmann::ordered_json(table.vocabulary(true)) : nlohmann::ordered_json();
  config["idf_weights"] = table.weights().empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(table.weights());
  return config;
}

/// The options that config_of() wrote, as Options: StringLookupOptions or IntegerLookupOptions. The vocabulary is not
/// among them.
template <class Options> Options options_from(const TextLayerConfig& config) {
  Options options;
  using Key = decltype(options.oov_token);
  options.max_tokens = config.optional<std::int64_t>("max_tokens");
  options.num_oov_indices = config.get<std::int64_t>("num_oov_indices", 1);
  options.mask_token = config.optional<Key>("mask_token");
  options.oov_token = config.get<Key>("oov_token", options.oov_token);
  options.invert = config.get<bool>("invert", false);
  options.output_mode = output_mode_of(config.get<std::string>("output_mode", "int"), config.source());
  options.pad_to_max_tokens = config.get<bool>("pad_to_max_tokens", false);
  return options;
}

/// A Layer with these options and the vocabulary of the file, which it takes as adapt() does.
template <class Layer, class Options> Layer with_vocabulary(Options options, const TextLayerConfig& config) {
  const auto vocabulary = config.get<decltype(Options::vocabulary)>("vocabulary", {});
  const auto weights = config.get<std::vector<double>>("idf_weights", {});
  Layer layer(std::move(options));
  if (!vocabulary.empty() || !weights.empty()) layer.set_vocabulary(vocabulary, weights);
  return layer;
}

/// A layer made from a file: what it refuses is a DataError of the file.
template <class Make> auto made_from(const TextLayerConfig& config, const Make& make) {
  try {
    return make();
  } catch (const InvalidArgument& error) { throw DataError(text(config.source(), ": ", error.what())); }
}

}  // namespace gradus
