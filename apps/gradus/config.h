/// The configuration of a training run: read from TOML, strictly, and written back resolved.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::command {

/// A configuration that cannot be: the message names file, line and key.
class ConfigError : public Error {
  using Error::Error;
};

struct DataConfig {
  std::string kind = "images";      // "images" "text"
  std::filesystem::path directory;  // of the files; empty: that of the configuration file
  std::string train_images, train_labels, test_images, test_labels;
  double mean = 0, deviation = 1;          // of pixels divided by 255: (x / 255 - mean) / deviation
  std::string text;                        // of a text: the file, UTF-8
  std::int64_t context = 64, stride = 32;  // windows of so many characters, that begin so many apart
  double test_share = 0.1;                 // of the text, at its end
};
/// Which of the fields a type has says the table in config.cpp; what it becomes, the one in model.cpp.
struct LayerConfig {
  std::string type;
  std::int64_t units = 0, filters = 0;
  std::string activation = "linear";
  bool use_bias = true;
  std::vector<std::int64_t> kernel_size, strides, pool_size;  // rows and columns
  std::string padding = "valid";
  std::vector<std::int64_t> shape;  // without the batch
  double rate = 0;
  double momentum = 0.99, epsilon = 1e-3;
  std::int64_t width = 0, heads = 4;
};
struct OptimizerConfig {
  std::string type = "adam";  // "sgd" "adam" "adamw"
  double learning_rate = 0.001;
  double momentum = 0;
  bool nesterov = false;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, global_clipnorm = 0;
};
struct TrainConfig {
  std::int64_t seed = 0, threads = 0;
  DataConfig data;
  std::vector<LayerConfig> layers;
  OptimizerConfig optimizer;
  std::int64_t epochs = 1, batch_size = 32, micro_batch = 0;
  bool validate_each_epoch = false;
};

/// ConfigError says line, key, what was expected and what was given; misspelt keys get a suggestion. `source` names the
/// text in messages. `settings`: "optimizer.learning_rate=0.1" or "layers[1].units=64" takes the place of what the text
/// says; a value that is no TOML is a string.
TrainConfig parse_config(std::string_view text, std::string_view source, std::span<const std::string> settings = {});
/// Unavailable if the file cannot be read.
TrainConfig read_config(const std::filesystem::path& file, std::span<const std::string> settings = {});
/// TOML that parse_config reads back to the same configuration.
std::string to_toml(const TrainConfig& config);

}  // namespace gradus::command
