/// The data of a configuration: files become examples for training and for testing, and batches of them.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "apps/gradus/config.h"
#include "apps/gradus/data_checksum.h"
#include "apps/gradus/text.h"
#include "gradus/gradus.h"

namespace gradus::command {

/// (x, y) as they lie in the files: pixels u8, the features of a table f32, arrays, or characters i32 [context] and the
/// next ones. Classes are i32, other labels f32.
struct Split {
  Dataset<2> raw;
  std::int64_t examples;
  std::optional<Dataset<3>> weighted = {};  // the same with the column of weights, f32, where the data have one
};

/// Facts of the training files that later users of the model need: data.json in the run directory.
struct DataFacts {
  Spec input = {};                                                  // of the model; any_size in front
  std::vector<std::string> classes = {};                            // their names, where they have any
  std::vector<std::string> columns = {};                            // the features of a table
  std::map<std::string, std::vector<std::string>> categories = {};  // the words of its columns
  bool of_classes = true;                                           // classes are predicted; else numbers
  std::optional<DType> raw = {};              // of features as their files have them; runs of long ago do not say
  std::optional<DataChecksum> checksum = {};  // of the data; runs of long ago have none
};
std::string to_json(const DataFacts& facts);
/// DataError if the file is not as to_json wrote it.
DataFacts read_facts(const std::filesystem::path& file);

/// Classes as a file says them, i32, and where each of them stands, for messages.
struct LabelsOfFile {
  Tensor classes;
  std::function<std::string(std::int64_t row)> place;
};

struct Data {
  Split train, test;
  Spec input;  // of the model: f32, or i32 of tokens; any_size in front; facts.input too
  std::optional<Vocabulary> vocabulary = {};
  DataFacts facts = {};
  std::vector<LabelsOfFile> labels = {};  // of kinds where they may be any number
  /// How many scores the layer `scores` gives; 0: the data do not say.
  std::int64_t outputs() const;
};
/// DataError or Unavailable say which file is wrong.
Data load_data(const DataConfig& config);
/// As load_data, with the vocabulary and the words that a run was trained with.
Data load_data(const DataConfig& config, const std::filesystem::path& run);

/// ConfigError if the configuration of a run names other columns than those that it was trained on: `facts`.
void check_columns(const DataConfig& config, const DataFacts& facts, const std::filesystem::path& run);

/// DataError says where the first label stands that is none of 0 ... classes - 1.
void check_labels(const Data& data, std::int64_t classes);

/// How many examples are tested at once.
std::int64_t test_batch(const DataConfig& config);
/// Batches as the model takes them: numbers normalised, one number to predict [batch, 1].
Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size);
/// The same of (x, y, weight).
Dataset<3> batches(const Dataset<3>& raw, const DataConfig& config, std::int64_t batch_size);
/// The same of x alone.
Tensor prepared(const Tensor& x, const DataConfig& config);

/// How the tables of a run are read. `facts` is empty before the training table was read.
CsvOptions csv_options(const DataConfig& config, const DataFacts& facts);
data::ImageOptions image_options(const DataConfig& config);
/// An array of a file by its name; DataError lists those there are.
Tensor array_named(const std::string& name, const NamedTensors& arrays, const std::string& source);
/// Labels as the task (DataConfig) wants them: classes as i32, where [n, 1] becomes [n], numbers as f32. ConfigError
/// tells the place of a row whose label is no class where classes are asked for.
Tensor as_labels(const Tensor& y, const std::string& task, const std::function<std::string(std::int64_t row)>& place);
/// f64 becomes f32 and i64 i32.
Tensor as_features(const Tensor& x, const std::string& place);

}  // namespace gradus::command
