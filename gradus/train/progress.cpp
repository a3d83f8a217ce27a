/// Lines of progress. No colours: there is nothing for NO_COLOR to switch off.
#include "gradus/train/progress.h"
#include <sys/ioctl.h>
#include <unistd.h>
#include <cstdlib>
#include <string_view>
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return shows_progress_on_stderr() && isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb";
}

/// As much of a line as the terminal shows without a break, which could not be rewritten.
std::string cut_to_terminal(const std::string& line) {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  return line.substr(0, size.ws_col - 1u);
}

std::string spelt(const NamedNumbers& numbers) {
  std::string line;
  for (const auto& [name, value] : numbers) line += "  " + printable(name, true) + " " + short_number(value);
  return line;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return text(whole, " s");
  if (whole < 3600) return text(whole / 60, " min ", whole % 60, " s");
  return text(whole / 3600, " h ", whole / 60 % 60, " min");
}

}  // namespace

std::string short_number(double value) {
  TextStream out;
  out.precision(4);
  out << value;
  return std::move(out).str();
}

Progress::Progress(bool verbose, int epochs, std::optional<std::int64_t> steps_per_epoch)
    : verbose_(verbose), terminal_(verbose && is_terminal()), epochs_(epochs), steps_(steps_per_epoch) {}

void Progress::begin_epoch(int epoch) {
  epoch_ = epoch;
  begin_ = shown_ = Clock::now();
}

bool Progress::wants_line() const { return terminal_ && Clock::now() - shown_ >= std::chrono::milliseconds(200); }

std::string Progress::head() const { return text("epoch ", epoch_ + 1, "/", epochs_); }

std::string Progress::line(std::int64_t done, double seconds, const NamedNumbers& numbers) const {
  const double each = seconds / static_cast<double>(done);
  std::string line = text(head(), "  step ", done);
  if (steps_ && done <= *steps_) line += text("/", *steps_);
  if (steps_ && done < *steps_) line += "  ETA " + duration(each * static_cast<double>(*steps_ - done));
  return line + "  " + short_number(1000 * each) + " ms/step" + spelt(numbers);
}

void Progress::show_step(std::int64_t done, const NamedNumbers& numbers) {
  shown_ = Clock::now();
  show_progress(
      rewritten(cut_to_terminal(line(done, std::chrono::duration<double>(shown_ - begin_).count(), numbers))));
  unfinished_ = true;
}

void Progress::end_epoch(std::int64_t steps, bool whole, double seconds, const NamedNumbers& numbers) {
  if (whole) steps_ = steps;
  if (!verbose_) return;
  const double each = steps > 0 ? seconds / static_cast<double>(steps) : 0;
  show_progress(rewritten(text(head(), "  ", steps, " steps  ", short_number(seconds), " s  ",
                               short_number(1000 * each), " ms/step", spelt(numbers))) +
                "\n");
  unfinished_ = false;
}

void Progress::abandon() {
  if (unfinished_) show_progress("\n");
  unfinished_ = false;
}

std::string Progress::rewritten(const std::string& line) const {
  return terminal_ ? "\r" + line + "\033[K" : line;  // clears what is left of a longer line
}

}  // namespace gradus
