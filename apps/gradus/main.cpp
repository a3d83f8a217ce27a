/// The command `gradus`: reads the command line, nothing more.
#include <CLI/CLI.hpp>
#include "apps/gradus/advise.h"
#include "apps/gradus/commands.h"
#include "apps/gradus/last_words.h"
#include "apps/gradus/launch.h"
#include "apps/gradus/output.h"
#include "apps/gradus/profile.h"
#include "apps/gradus/ranges.h"
#include "apps/gradus/ranks.h"
#include "apps/gradus/tune.h"

using namespace gradus::command;

namespace {

CLI::App* add_train(CLI::App& app, TrainArguments& a) {
  CLI::App* command = app.add_subcommand("train", "Train the model of a configuration file");
  CLI::Option* config = command->add_option("config", a.config, "TOML file; see configs/ and docs/configuration.md");
  command->add_option("--resume", a.resume, "Go on with the training of a run directory")->excludes(config);
  command->add_flag("--data-changed", a.data_changed, "With --resume: go on though the data are not those of before");
  command->add_option("--data-dir", a.data_directory, "Directory of the data")->envname("GRADUS_DATA_DIR");
  command->add_option("--output", a.output, "Run directory (default: runs/<name>-<time>)");
  command->add_option("--set", a.settings,
                      "KEY=VALUE in place of what the file says, such as optimizer.learning_rate=0.1");
  command->add_option("--epochs", a.epochs, "Passes over the training set")->check(epochs_range);
  command->add_option("--batch-size", a.batch_size, "Examples a step")->check(size_range);
  command->add_option("--seed", a.seed, "Seed of weights, order and dropout")
      ->envname("GRADUS_SEED")
      ->check(seed_range);
  command->add_option("--threads", a.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  command->add_option("--device", a.device, "Device that computes, as `gradus devices` prints it, such as gpu:0");
  command->add_option("--fast-dev-run", a.fast_dev_run, "A trial of so many steps that writes nothing")
      ->check(size_range);
  command->add_flag("--json", a.json, "Result as one JSON line");
  command->add_flag("--quiet", a.quiet, "No progress");
  return command;
}

CLI::App* add_predict(CLI::App& app, PredictArguments& a) {
  CLI::App* command = app.add_subcommand("predict", "Say what the model of a run makes of other data");
  command->add_option("run", a.run, "Run directory that `gradus train` wrote")->required();
  command->add_option("input", a.input, "As the run's data: .csv, .npy, .npz, idx, an image or a folder of images")
      ->required();
  command->add_option("--array", a.array, "Name of the array in a .npz file (x)");
  command->add_option("--output", a.output, "File: .npy for all scores, else a table (default: stdout)");
  command->add_option("--threads", a.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  return command;
}

/// The options of both `compile` and `export`.
void add_exported(CLI::App& command, auto& a, bool takes_both) {
  command.add_option("source", a.source, "Configuration, run directory or ONNX model")->required();
  CLI::Option* train = command.add_flag("--train", a.train, "The training step");
  CLI::Option* predict = command.add_flag("--predict", a.predict, "Predictions (the default)");
  if (takes_both)
    predict->description("Predictions (the default); with --train both, with one state: STEM_train, STEM_predict");
  else predict->excludes(train);
  command.add_option("--batch-size", a.batch_size, "Rows of the arguments (the configuration's; of predictions 1)")
      ->check(size_range);
  command.add_option("--data-dir", a.data_directory, "Directory of the data")->envname("GRADUS_DATA_DIR");
}

CLI::App* add_compile(CLI::App& app, CompileArguments& a) {
  CLI::App* command =
      app.add_subcommand("compile", "Write a model as an object file and a C header, for programs without Gradus");
  add_exported(*command, a, true);
  command->add_option("-o,--output", a.stem, "STEM of STEM.o and STEM.h; its last part names the functions")
      ->required();
  command->add_option("--target", a.target, "Machines that run it, as `gradus devices` lists them (default: this one)");
  command->add_option("--instruction-set", a.instruction_set,
                      "avx2 or avx512, of ARM neon (default: this machine's, of another target its first)");
  command->add_option("--weights", a.weights, "FILE for the values of weights, which are part of STEM.o otherwise");
  return command;
}

CLI::App* add_export(CLI::App& app, ExportArguments& a) {
  CLI::App* command = app.add_subcommand("export", "Write a model as text of StableHLO, for compilers of accelerators");
  add_exported(*command, a, false);
  command->add_option("--stablehlo", a.stablehlo, "The file")->required();
  return command;
}

CLI::App* add_inspect(CLI::App& app, InspectArguments& a) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a run, a checkpoint, a model or a file of arrays holds");
  command->add_option("path", a.path, "Run or checkpoint directory, .toml, .onnx, .safetensors, .npz, .npy")
      ->required();
  command->add_flag("--graph", a.graph, "With the graph of the model");
  command->add_flag("--json", a.json, "As JSON");
  return command;
}

/// Reads the command line and runs it; gives the exit status.
int run(int count, char** arguments) {
  CLI::App app{"Gradients and compiled training steps in C++20.", "gradus"};
  app.require_subcommand(1);
  app.set_version_flag("--version", GRADUS_VERSION);
  app.footer(
      "Results go to stdout, progress to stderr. Exit status: 0 ok, 1 failed, 2 usage, 3 bad data, 4 diverged, 130 "
      "interrupted, 141 output closed by its reader.");

  TrainArguments train_arguments;
  CLI::App* train_command = add_train(app, train_arguments);

  EvalArguments eval_arguments;
  CLI::App* eval_command = app.add_subcommand("eval", "Evaluate the weights of a run directory on its test set");
  eval_command->add_option("run", eval_arguments.run, "Run directory that `gradus train` wrote")->required();
  eval_command->add_option("--data-dir", eval_arguments.data_directory, "Directory of the data")
      ->envname("GRADUS_DATA_DIR");
  eval_command->add_option("--threads", eval_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  eval_command->add_flag("--json", eval_arguments.json, "Result as one JSON line");

  PredictArguments predict_arguments;
  CLI::App* predict_command = add_predict(app, predict_arguments);
  CompileArguments compile_arguments;
  CLI::App* compile_command = add_compile(app, compile_arguments);

  ExportArguments export_arguments;
  CLI::App* export_command = add_export(app, export_arguments);
  InspectArguments inspect_arguments;
  CLI::App* inspect_command = add_inspect(app, inspect_arguments);

  SampleArguments sample_arguments;
  CLI::App* sample_command = app.add_subcommand("sample", "Write a text as the model of a run directory thinks");
  sample_command->add_option("run", sample_arguments.run, "Run directory that `gradus train` wrote for a text")
      ->required();
  sample_command->add_option("--prompt", sample_arguments.prompt, "What to go on with");
  sample_command->add_option("--characters", sample_arguments.characters, "How many to write")->check(count_range);
  sample_command->add_option("--temperature", sample_arguments.temperature, "0: always the likeliest")
      ->check(CLI::NonNegativeNumber);
  sample_command->add_option("--seed", sample_arguments.seed, "Of what is drawn")
      ->envname("GRADUS_SEED")
      ->check(seed_range);
  sample_command->add_option("--threads", sample_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);

  bool devices_as_json = false, with_network = false;
  CLI::App* devices_command = app.add_subcommand("devices", "List where Gradus can compute");
  devices_command->add_flag("--json", devices_as_json, "As JSON");
  devices_command->add_flag("--network", with_network, "With how fast messages go between ranks of this machine");

  RunArguments run_arguments;
  CLI::App* run_command = app.add_subcommand("run", "Run an ONNX model on arrays");
  run_command->add_option("model", run_arguments.model, "ONNX file")->required();
  run_command->add_option("--input", run_arguments.inputs, "NAME=FILE.npy, once for each input of the model");
  run_command->add_option("--output", run_arguments.output, "Directory for NAME.npy of each output")->required();
  run_command->add_option("--threads", run_arguments.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);

  OnnxTestArguments onnx_test_arguments;
  CLI::App* onnx_test_command =
      app.add_subcommand("onnx-test", "Run directories in the layout of ONNX's conformance suite");
  onnx_test_command
      ->add_option("directories", onnx_test_arguments.directories, "Directories with a model.onnx, or with such below")
      ->required();

  TuneArguments tune_arguments;
  CLI::App* tune_command = add_tune(app, tune_arguments);

  ProfileArguments profile_arguments;
  CLI::App* profile_command = add_profile(app, profile_arguments);

  AdviseArguments advise_arguments;
  CLI::App* advise_command = add_advise(app, advise_arguments);

  LaunchArguments launch_arguments;
  CLI::App* launch_command = add_launch(app, launch_arguments);
  launch_arguments.program = program_of_launch(count, arguments);

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? ok : usage; }
  try {
    for (const CLI::App* alone : {compile_command, export_command, run_command, onnx_test_command, tune_command,
                                  profile_command, advise_command, sample_command})
      if (alone->parsed()) require_one_process(alone->get_name());
    if (train_command->parsed()) return train(train_arguments);
    if (predict_command->parsed()) return predict_examples(predict_arguments);
    if (compile_command->parsed()) return compile_object(compile_arguments);
    if (export_command->parsed()) return export_text(export_arguments);
    if (inspect_command->parsed()) return inspect(inspect_arguments);
    if (eval_command->parsed()) return eval(eval_arguments);
    if (run_command->parsed()) return run_model(run_arguments);
    if (onnx_test_command->parsed()) return onnx_test(onnx_test_arguments);
    if (tune_command->parsed()) return tune(tune_arguments);
    if (profile_command->parsed()) return profile_training(profile_arguments);
    if (advise_command->parsed()) return advise_training(advise_arguments);
    if (launch_command->parsed()) return launch(launch_arguments);
    if (sample_command->parsed()) return sample(sample_arguments);
    return list_devices(devices_as_json, with_network);
  } catch (...) { return report_failure(); }
}

}  // namespace

int main(int count, char** arguments) {
  install_last_words();
  CheckedOutput output;
  return output.finish(run(count, arguments));
}
