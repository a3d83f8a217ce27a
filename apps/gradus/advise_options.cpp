/// The command line of `gradus advise`.
#include <CLI/CLI.hpp>
#include "apps/gradus/advise.h"
#include "apps/gradus/ranges.h"

namespace gradus::command {

CLI::App* add_advise(CLI::App& app, AdviseArguments& a) {
  CLI::App* command = app.add_subcommand("advise", "Try what would make a training faster, and say what is worth it");
  command->add_option("config", a.config, "TOML file; see configs/ and docs/configuration.md")->required();
  command->add_option("--max-seconds", a.max_seconds, "Time of all trials (30)");
  command->add_flag("--allow-lower-precision", a.allow_lower_precision, "Try bfloat16 and float16, too");
  command
      ->add_option("--apply", a.apply,
                   "OUT.toml: file for the configuration with what is worth it and keeps what is learned. Once more, "
                   "as --apply=batch_size,precision: with these, too, which change what is learned")
      ->allow_extra_args(false);
  command->add_option("--lever", a.levers, "One to be tried, such as prefetch; any number of them (all)");
  command->add_option("--data-dir", a.data_directory, "Directory of the data")->envname("GRADUS_DATA_DIR");
  command->add_option("--set", a.settings, "KEY=VALUE in place of what the file says, such as train.batch_size=256");
  command->add_option("--threads", a.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  CLI::Option* ranks =
      command->add_flag("--ranks", a.ranks, "With what 1 to 1024 ranks would take, simulated by a cost model");
  command->add_option("--latency-us", a.latency_us, "Of their network, in microseconds (TCP on this machine, measured)")
      ->needs(ranks)
      ->check(CLI::NonNegativeNumber);
  command->add_option("--gigabytes-per-second", a.gigabytes_per_second, "Of their network (likewise)")
      ->needs(ranks)
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", a.json, "The advice as one JSON line");
  return command;
}

}  // namespace gradus::command
