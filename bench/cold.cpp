#include "bench/cold.h"
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::bench {
namespace {

/// Starts this process anew with the same arguments.
[[noreturn]] void execute_again() {
  std::vector<std::string> arguments;
  std::ifstream command_line("/proc/self/cmdline");
  for (std::string argument; std::getline(command_line, argument, '\0');) arguments.push_back(argument);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  throw Error("it cannot execute itself");
}

}  // namespace

Figures measure_cold(const std::function<double(const NoteLoss&)>& first_step) {
  if (seconds_since_exec().is_null()) {
    setenv("T0", std::to_string(wall_seconds()).c_str(), 1);
    execute_again();
  }
  Figures figures;
  figures.extra["compile_s"] = first_step([&](double loss) {
    figures.extra["cold_s"] = seconds_since_exec();
    figures.extra["loss"] = loss;
  });
  return figures;
}

}  // namespace gradus::bench
