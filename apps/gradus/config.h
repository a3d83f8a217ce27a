/// The configuration of a training run: read from TOML, strictly, and written back resolved.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "apps/gradus/optimizer_config.h"
#include "apps/gradus/toml.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/checkpoints.h"
#include "gradus/train/tensorboard.h"

namespace gradus::command {

/// The table in config.cpp says which of the fields a kind has; data.h which data they are.
struct DataConfig {
  std::string kind = "idx";         // "idx" "images" "npz" "csv" "text"
  std::filesystem::path directory;  // of the files; empty: that of the configuration file
  std::string train_images, train_labels, test_images, test_labels;                      // idx
  std::string train, test;                                                               // images, csv
  std::string file, train_x = "x_train", train_y = "y_train", test_x = "", test_y = "";  // npz
  std::string text;                                                                      // text
  std::int64_t height = 0, width = 0, channels = 3;                                      // images
  double mean = 0, deviation = 1;             // of pixels divided by 255, and of other numbers: (x - mean) / deviation
  std::vector<std::string> class_names = {};  // idx, npz: the names of the classes, from 0 on
  std::string label;                          // csv: the column that is to be predicted
  bool header = true;
  char separator = ',';
  std::optional<double> missing_value = {};
  std::vector<std::string> columns = {};      // the features, in this order; none: all but label and weight
  std::vector<std::string> categories = {};   // columns of words
  std::string category_encoding = "integer";  // form of their numbers: "integer" "one_hot" "embedding"
  std::int64_t category_width = 8;            // of an embedding
  std::string sample_weight;                  // the column that says how much an example counts; empty: all the same
  std::int64_t context = 64, stride = 32;     // text: characters of a window, and between their beginnings
  /// The purpose of labels: "classification", "regression", or "automatic": integers and words are classes. No key of
  /// [data]: train.task and train.loss decide.
  std::string task = "automatic";
  // How batches for training are made; it changes no result.
  std::optional<bool> prefetch = {};    // while the model computes; none: those of images alone
  std::int64_t num_parallel_calls = 0;  // threads that make them, of those made ahead; 0: as many as help
  bool cache = false;                   // examples are kept in memory once they were made
  double test_share = 0.1;  // where nothing else is for testing: of a text its end, else drawn once and for all
};
/// l1 * sum(|x|) + l2 * sum(x^2)
struct PenaltyConfig {
  double l1 = 0, l2 = 0;
};
/// The table in config.cpp says which of the fields a type has; the one in model.cpp which layer it becomes.
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
  std::optional<PenaltyConfig> kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  std::string policy;  // empty: that of the model
};
/// Callbacks of a training run. Their files lie in the run directory.
struct CallbackConfig {
  std::optional<EarlyStoppingOptions> early_stopping = {};
  std::optional<ReduceLROnPlateauOptions> reduce_lr_on_plateau = {};
  std::optional<ModelCheckpointOptions> model_checkpoint = {};  // best.safetensors
  std::optional<TensorBoardOptions> tensorboard = {};           // tensorboard/
  bool csv_logger = false;                                      // metrics.csv
  bool terminate_on_nan = false;
  double time_limit = 0;  // seconds; 0: none
};
/// How a batch is divided among those that train together.
struct DistributeConfig {
  std::int64_t micro_shards = 8;  // bits depend on it, and not on how many processes there are
  bool shard_optimizer = false;   // each process keeps a part of the optimizer's state; the same bits
  bool bf16_sums = false;         // gradients are rounded to be added up; other bits
};
struct TrainConfig {
  std::int64_t seed = 0, threads = 0;
  DataConfig data;
  std::vector<LayerConfig> layers;
  OptimizerConfig optimizer;
  std::int64_t epochs = 1, batch_size = 32, micro_batch = 0;
  std::int64_t max_bytes = 0;             // that a step keeps between its kernels; 0: no limit
  std::int64_t replicas = 1;              // logical devices of this process among which a batch is divided
  bool run_eagerly = false;               // op by op
  std::vector<std::string> disable = {};  // passes of the compiler
  bool validate_each_epoch = false;
  std::string policy = "float32";
  std::string device = {};                // that computes: "gpu:0", "xla"; empty: the default device
  std::vector<double> class_weight = {};  // in training: how much examples of each class count; empty: all the same
  std::string task = "automatic";         // "classification", "regression", or as the loss, else the labels, say
  std::string loss = "automatic";         // of classes sparse_categorical_crossentropy, of numbers mean_squared_error
  std::vector<std::string> metrics = {};  // besides accuracy or the mean absolute error
  CheckpointOptions checkpoints = {.directory = {}, .max_to_keep = 2};  // checkpoints/ in the run directory
  CallbackConfig callbacks;
  std::optional<DistributeConfig> distribute = {};  // none: one process, batches as they are
};

/// ConfigError names line, key, the expected and the given value; misspelt keys get a suggestion. `source` names the
/// text in messages. `settings`: "optimizer.learning_rate=0.1" replaces the value of the text.
TrainConfig parse_config(std::string_view text, std::string_view source, std::span<const std::string> settings = {});
/// Unavailable if the file cannot be read.
TrainConfig read_config(const std::filesystem::path& file, std::span<const std::string> settings = {});
/// TOML that parse_config reads back to the same configuration.
std::string to_toml(const TrainConfig& config);

}  // namespace gradus::command
