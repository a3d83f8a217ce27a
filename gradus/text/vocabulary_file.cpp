#include "gradus/text/vocabulary_file.h"
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"

namespace gradus {

std::string read_vocabulary_text(const std::filesystem::path& file) {
  const std::int64_t bytes = InputFile(file).size();
  require<DataError>(bytes <= most_vocabulary_bytes, file.string(), ": it has ", bytes, " bytes; a vocabulary has at ",
                     "most ", most_vocabulary_bytes);
  return read_text_file(file);
}

std::string text_layer_json(std::string_view class_name, nlohmann::ordered_json config) {
  return nlohmann::ordered_json{{"class_name", class_name}, {"config", std::move(config)}}.dump(1) + '\n';
}

void write_text_layer(const std::filesystem::path& file, std::string_view class_name, nlohmann::ordered_json config) {
  AtomicFile out(file);
  out.write(text_layer_json(class_name, std::move(config)));
  out.commit();
}

std::string difference_of_options(const nlohmann::ordered_json& own, const nlohmann::ordered_json& found) {
  for (const auto& [key, value] : own.items()) {
    if (key == "vocabulary" || key == "idf_weights") continue;
    const nlohmann::ordered_json other = found.contains(key) ? found[key] : nlohmann::ordered_json();
    if (value != other) return text("expected ", key, ' ', value.dump(), ", the file has ", other.dump());
  }
  return {};
}

TextLayerConfig::TextLayerConfig(std::string_view given, std::string source, std::string_view class_name)
    : source_(std::move(source)) {
  nlohmann::json json = parse_json(given, source_);
  const auto text_of = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                                           : std::string();
  };
  require<DataError>(text_of("class_name") == class_name, source_, ": its class_name is `", text_of("class_name"),
                     "`, expected ", class_name);
  require<DataError>(json.contains("config") && json["config"].is_object(), source_, ": there is no object `config`");
  config_ = std::move(json["config"]);
}

template <class T> T TextLayerConfig::get(const char* key, T otherwise) const {
  if (!has(key)) return otherwise;
  try {
    return config_[key].get<T>();
  } catch (const nlohmann::json::exception&) {
    throw DataError(text(source_, ": config.", key, " is ", config_[key].type_name(), ", expected another type"));
  }
}

template bool TextLayerConfig::get(const char*, bool) const;
template std::int64_t TextLayerConfig::get(const char*, std::int64_t) const;
template std::string TextLayerConfig::get(const char*, std::string) const;
template std::vector<std::string> TextLayerConfig::get(const char*, std::vector<std::string>) const;
template std::vector<std::int64_t> TextLayerConfig::get(const char*, std::vector<std::int64_t>) const;
template std::vector<double> TextLayerConfig::get(const char*, std::vector<double>) const;

}  // namespace gradus
