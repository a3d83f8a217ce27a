/// Small files, each written as a whole.
#include "apps/gradus/run_directory.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "gradus/formats/atomic_file.h"

namespace gradus::command {

RunDirectory::RunDirectory(std::filesystem::path directory, bool is_new) : directory_(std::move(directory)) {
  std::error_code problem;
  is_made_here_ = std::filesystem::create_directories(directory_, problem) || is_new;
  require<Unavailable>(!problem && std::filesystem::is_directory(directory_), "run directory ", directory_.string(),
                       ": cannot be made: ", problem ? problem.message() : "a file of that name is there",
                       "; choose another with --output");
}

void RunDirectory::write(const std::filesystem::path& file, const std::string& contents) const {
  AtomicFile out(file);
  out.write(contents);
  out.commit();
}

RunClaim::RunClaim(const RunDirectory& run)
    : run_(run), descriptor_(open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  require<Unavailable>(descriptor_ >= 0, "run directory ", run.path().string(),
                       ": cannot be opened: ", std::generic_category().message(errno));
  int result = 0;
  do result = flock(descriptor_, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  held_ = result == 0;
  if (held_ || errno != EWOULDBLOCK) return;
  close(descriptor_);
  throw Unavailable(text("run directory ", run.path().string(),
                         ": another process is writing into it; wait for it, or choose another with --output"));
}

RunClaim::~RunClaim() {
  if (begun_) rmdir(run_.checkpoints().c_str());  // if it is empty
  std::error_code none;
  if (begun_ && !kept_ && !std::filesystem::exists(run_.checkpoints(), none)) {
    put_back();
    if (run_.is_made_here()) rmdir(run_.path().c_str());  // only if it is empty
  }
  close(descriptor_);
}

void RunClaim::put_back() const noexcept {
  std::error_code none;
  for (const auto& [file, contents] : before_) try {
      if (contents) run_.write(file, *contents);
      else std::filesystem::remove(file, none);
    } catch (const std::exception&) {}  // the failure of the training is the one that is reported
}

void RunClaim::begin_training() {
  // Making it decides between two processes where there are no locks.
  begun_ = mkdir(run_.checkpoints().c_str(), 0777) == 0;
  const int problem = begun_ ? 0 : errno;
  std::error_code none;
  if (problem == EEXIST && held_)
    begun_ = std::filesystem::is_empty(run_.checkpoints(), none);  // of one that was killed
  require<Unavailable>(begun_ || problem == EEXIST, "run directory ", run_.path().string(),
                       ": cannot be written: ", std::generic_category().message(problem));
  require<Unavailable>(begun_, "run directory ", run_.path().string(),
                       ": a training was begun there; go on with gradus train --resume ", run_.path().string(),
                       ", or choose another with --output");
  for (const auto& file : {run_.config(), run_.data(), run_.vocabulary()})
    before_.push_back({file, std::filesystem::exists(file, none) ? std::optional(read_text_file(file)) : std::nullopt});
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
