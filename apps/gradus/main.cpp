/// The command `gradus`: reads the command line, nothing more.
#include <CLI/CLI.hpp>
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/tune.h"

using namespace gradus::command;

int main(int count, char** arguments) {
  CLI::App app{"Gradients and compiled training steps in C++20.", "gradus"};
  app.require_subcommand(1);
  app.set_version_flag("--version", GRADUS_VERSION);
  app.footer(
      "Results go to stdout, progress to stderr. Exit status: 0 ok, 1 failed, 2 usage, 3 bad data, 4 diverged, 130 "
      "interrupted.");

  TrainArguments train_arguments;
  CLI::App* train_command = app.add_subcommand("train", "Train the model of a configuration file");
  train_command->add_option("config", train_arguments.config, "TOML file; see configs/fashion_mnist.toml")->required();
  train_command->add_option("--data-dir", train_arguments.data_directory, "Directory of the idx files")
      ->envname("GRADUS_DATA_DIR");
  train_command->add_option("--output", train_arguments.output, "Run directory (default: runs/<name>-<time>)");
  train_command->add_option("--epochs", train_arguments.epochs, "Passes over the training set")
      ->check(CLI::PositiveNumber);
  train_command->add_option("--batch-size", train_arguments.batch_size, "Examples a step")->check(CLI::PositiveNumber);
  train_command->add_option("--seed", train_arguments.seed, "Seed of weights, order and dropout")
      ->envname("GRADUS_SEED")
      ->check(CLI::NonNegativeNumber);
  train_command->add_option("--threads", train_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(CLI::NonNegativeNumber);
  train_command->add_flag("--json", train_arguments.json, "Result as one JSON line");
  train_command->add_flag("--quiet", train_arguments.quiet, "No progress");

  EvalArguments eval_arguments;
  CLI::App* eval_command = app.add_subcommand("eval", "Evaluate the weights of a run directory on its test set");
  eval_command->add_option("run", eval_arguments.run, "Run directory that `gradus train` wrote")->required();
  eval_command->add_option("--data-dir", eval_arguments.data_directory, "Directory of the idx files")
      ->envname("GRADUS_DATA_DIR");
  eval_command->add_option("--threads", eval_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(CLI::NonNegativeNumber);
  eval_command->add_flag("--json", eval_arguments.json, "Result as one JSON line");

  SampleArguments sample_arguments;
  CLI::App* sample_command = app.add_subcommand("sample", "Write a text as the model of a run directory thinks");
  sample_command->add_option("run", sample_arguments.run, "Run directory that `gradus train` wrote for a text")
      ->required();
  sample_command->add_option("--prompt", sample_arguments.prompt, "What to go on with");
  sample_command->add_option("--characters", sample_arguments.characters, "How many to write")
      ->check(CLI::NonNegativeNumber);
  sample_command->add_option("--temperature", sample_arguments.temperature, "0: always the likeliest")
      ->check(CLI::NonNegativeNumber);
  sample_command->add_option("--seed", sample_arguments.seed, "Of what is drawn")
      ->envname("GRADUS_SEED")
      ->check(CLI::NonNegativeNumber);
  sample_command->add_option("--threads", sample_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(CLI::NonNegativeNumber);

  bool devices_as_json = false;
  CLI::App* devices_command = app.add_subcommand("devices", "List where Gradus can compute");
  devices_command->add_flag("--json", devices_as_json, "As JSON");

  RunArguments run_arguments;
  CLI::App* run_command = app.add_subcommand("run", "Run an ONNX model on arrays");
  run_command->add_option("model", run_arguments.model, "ONNX file")->required();
  run_command->add_option("--input", run_arguments.inputs, "NAME=FILE.npy, once for each input of the model");
  run_command->add_option("--output", run_arguments.output, "Directory for NAME.npy of each output")->required();
  run_command->add_option("--threads", run_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(CLI::NonNegativeNumber);

  OnnxTestArguments onnx_test_arguments;
  CLI::App* onnx_test_command =
      app.add_subcommand("onnx-test", "Run directories in the layout of ONNX's conformance suite");
  onnx_test_command
      ->add_option("directories", onnx_test_arguments.directories, "Directories with a model.onnx, or with such below")
      ->required();

  TuneArguments tune_arguments;
  CLI::App* tune_command = add_tune(app, tune_arguments);

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? ok : usage; }
  try {
    if (train_command->parsed()) return train(train_arguments);
    if (eval_command->parsed()) return eval(eval_arguments);
    if (run_command->parsed()) return run_model(run_arguments);
    if (onnx_test_command->parsed()) return onnx_test(onnx_test_arguments);
    if (tune_command->parsed()) return tune(tune_arguments);
    if (sample_command->parsed()) return sample(sample_arguments);
    return list_devices(devices_as_json);
  } catch (...) { return report_failure(); }
}
