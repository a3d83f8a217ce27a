/// `gradus tune`: learning rates, batch sizes, and values of any keys of a configuration.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gradus::command {

struct TuneArguments {
  std::filesystem::path config;
  std::optional<std::filesystem::path> data_directory, output;
  bool learning_rate = false, batch_size = false;  // instead of a search
  std::vector<std::string> vary;                   // KEY=A,B,C  KEY=LOW..HIGH  KEY=LOW..HIGH:STEP  KEY=log:LOW..HIGH
  std::string search;  // "grid" "random" "halving" "hyperband"; empty: a grid if nothing is a range of numbers
  std::int64_t trials = 20, parallel = 0;
  std::optional<std::int64_t> epochs, seed, threads, memory_limit;  // in MiB
  double validation_share = 0.1;                                    // of the training examples
  bool json = false, quiet = false;
};
/// Learning-rate range test, batch size, or search: a table on stdout, and in the run directory with a picture. A
/// search leaves the configuration of the best trial there.
int tune(const TuneArguments& arguments);

/// The subcommand, which fills `arguments`.
CLI::App* add_tune(CLI::App& app, TuneArguments& arguments);

}  // namespace gradus::command
