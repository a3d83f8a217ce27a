/// The options of `gradus tune` on the command line.
#include <CLI/CLI.hpp>
#include "apps/gradus/ranges.h"
#include "apps/gradus/tune.h"

namespace gradus::command {

CLI::App* add_tune(CLI::App& app, TuneArguments& a) {
  CLI::App* command = app.add_subcommand("tune", "Try learning rates, batch sizes, or values of any keys");
  command->add_option("config", a.config, "TOML file, as for train")->required();
  CLI::Option* rate = command->add_flag("--learning-rate", a.learning_rate, "Range test: where the loss falls fastest");
  CLI::Option* size = command->add_flag("--batch-size", a.batch_size, "The smallest one with nearly full throughput");
  command
      ->add_option("--vary", a.vary,
                   "KEY=A,B,C or KEY=LOW..HIGH or KEY=log:LOW..HIGH, such as optimizer.learning_rate=log:1e-4..1e-1 or "
                   "layers[1].units=32,64; once for each key")
      ->allow_extra_args(false)
      ->excludes(rate)
      ->excludes(size);
  rate->excludes(size);
  command->add_option("--search", a.search, "How: every combination, by chance, the better ones on")
      ->check(CLI::IsMember({"grid", "random", "halving", "hyperband"}));
  command->add_option("--trials", a.trials, "Of random and halving (20)")->check(size_range);
  command->add_option("--epochs", a.epochs, "The most of a trial (default: the configuration's)")->check(epochs_range);
  command->add_option("--parallel", a.parallel, "Trials at once (0: one a thread)")->check(threads_range);
  command->add_option("--validation-share", a.validation_share, "Of the training examples, held out (0.1)");
  command->add_option("--memory-limit", a.memory_limit, "MiB, of --batch-size")->check(size_range);
  command->add_option("--data-dir", a.data_directory, "Directory of the data")->envname("GRADUS_DATA_DIR");
  command->add_option("--output", a.output, "Directory for the results (default: runs/<name>-tune-<time>)");
  command->add_option("--seed", a.seed, "Of values, weights and order")->envname("GRADUS_SEED")->check(seed_range);
  command->add_option("--threads", a.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  command->add_flag("--json", a.json, "Result as one JSON line");
  command->add_flag("--quiet", a.quiet, "No progress");
  return command;
}

}  // namespace gradus::command
