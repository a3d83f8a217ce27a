/// Small files, written anew as a whole.
#include "apps/gradus/run_directory.h"
#include <chrono>
#include <ctime>
#include "gradus/base/error.h"
#include "gradus/formats/atomic_file.h"

namespace gradus::command {

RunDirectory::RunDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {
  std::error_code problem;
  std::filesystem::create_directories(directory_, problem);
  require<Unavailable>(!problem && std::filesystem::is_directory(directory_), "run directory ", directory_.string(),
                       ": cannot be made: ", problem ? problem.message() : "a file of that name is there",
                       "; choose another with --output");
}

void RunDirectory::write(const std::filesystem::path& file, const std::string& contents) const {
  AtomicFile out(file);
  out.write(contents);
  out.commit();
}

std::filesystem::path make_run_directory(const std::string& name, const std::filesystem::path& runs) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &local);
  const std::string timed = name + "-" + time;
  std::filesystem::path directory = runs / timed;
  std::error_code problem;
  std::filesystem::create_directories(runs, problem);
  for (int number = 2; !problem; ++number) {
    if (std::filesystem::create_directory(directory, problem)) return directory;
    if (!problem) directory = runs / text(timed, '-', number);
  }
  throw Unavailable(text("run directory ", directory.string(), ": cannot be made: ", problem.message(),
                         "; choose another with --output"));
}

}  // namespace gradus::command
