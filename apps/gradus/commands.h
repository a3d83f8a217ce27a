/// The subcommands: each takes the arguments of the command line and gives the exit status.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gradus::command {

/// 0 ok, 1 failed, 2 usage, 3 bad data, 4 diverged, 130 interrupted, 141 the reader of the output has gone.
enum ExitStatus { ok = 0, failed = 1, usage = 2, bad_data = 3, diverged = 4, interrupted = 130, reader_gone = 141 };

struct TrainArguments {
  std::filesystem::path config;
  std::optional<std::filesystem::path> data_directory, output;
  std::optional<std::filesystem::path> resume = {};  // a run directory, in place of a configuration
  std::optional<std::int64_t> epochs, batch_size, seed, threads;
  std::optional<std::string> device = {};  // in place of the configuration's
  std::vector<std::string> settings = {};  // "optimizer.learning_rate=0.1"
  std::int64_t fast_dev_run = 0;           // steps of a trial that writes nothing; 0: a training
  bool json = false, quiet = false;
  bool data_changed = false;  // of a resumed run: go on though the data are not those that it began with
};
int train(const TrainArguments& arguments);

struct EvalArguments {
  std::filesystem::path run;
  std::optional<std::filesystem::path> data_directory;
  std::optional<std::int64_t> threads;
  bool json = false;
};
int eval(const EvalArguments& arguments);

struct PredictArguments {
  std::filesystem::path run, input;             // input: a table, an array, an image or a folder of images
  std::string array = "x";                      // of a .npz file
  std::optional<std::filesystem::path> output;  // .npy: scores or numbers; else a table. Nothing: a table on stdout
  std::optional<std::int64_t> threads;
};
/// Predictions of a run's model for data without labels: a line for each example.
int predict_examples(const PredictArguments& arguments);

struct InspectArguments {
  std::filesystem::path path;
  bool graph = false, json = false;
};
/// The contents of a run, a checkpoint, an ONNX model or a file of arrays.
int inspect(const InspectArguments& arguments);

struct RunArguments {
  std::filesystem::path model, output;
  std::vector<std::string> inputs;  // name=file.npy
  std::optional<std::int64_t> threads;
};
/// Runs an ONNX model on arrays of .npy files; a file for each output, and a line on stdout.
int run_model(const RunArguments& arguments);

struct CompileArguments {
  std::filesystem::path source, stem;   // a configuration, a run directory or an ONNX model; of the two files
  bool train = false, predict = false;  // the training step; predictions, as without both
  std::optional<std::int64_t> batch_size;
  std::string instruction_set, target;
  std::optional<std::filesystem::path> data_directory, weights;  // weights: a file of their own
};
/// Writes a model as an object file and a header in C, and says on stdout where they are.
int compile_object(const CompileArguments& arguments);

struct ExportArguments {
  std::filesystem::path source, stablehlo;  // as for compile; the file
  bool train = false, predict = false;
  std::optional<std::int64_t> batch_size;
  std::optional<std::filesystem::path> data_directory;
};
/// Writes a model as text of StableHLO, and says on stdout where it is.
int export_text(const ExportArguments& arguments);

struct OnnxTestArguments {
  std::vector<std::filesystem::path> directories;
};
/// A line for each directory in the layout of ONNX's conformance suite, then the counts.
int onnx_test(const OnnxTestArguments& arguments);

struct SampleArguments {
  std::filesystem::path run;
  std::string prompt;
  std::int64_t characters = 400, seed = 0;
  double temperature = 0.8;
  std::optional<std::int64_t> threads;
};
int sample(const SampleArguments& arguments);

/// Where Gradus can compute; with `network` also how fast messages go between ranks of this machine.
int list_devices(bool json, bool network);

/// Within a handler: reports the error on stderr, and gives its exit status.
int report_failure();

}  // namespace gradus::command
