/// A rank's output, cut into lines that can stand between those of other ranks.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gradus::command {

/// Without a prefix lines stay as they are, also those that end in '\r', which are rewritten in place. With one, a line
/// cannot be rewritten, since another rank's may stand below it: then '\r' ends a line as '\n' does, and of lines that
/// come faster than `shortest_interval` the last one is passed on.
class RankLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t longest = 1 << 20;                      // bytes; a longer line becomes several
  static constexpr std::chrono::milliseconds shortest_interval{1000};  // between states of a line that is rewritten

  explicit RankLines(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The whole lines that these bytes end.
  std::string take(std::string_view bytes, Clock::time_point now);
  /// The rest, with an end.
  std::string finish();

 private:
  void add(std::string_view bytes, std::string& out);
  void end_line(std::string& out);
  void end_state(Clock::time_point now, std::string& out);
  void emit(std::string_view line, std::string& out) const;

  std::string prefix_;
  std::string begun_;                         // of a line without an end
  std::string held_;                          // a state of a line that is rewritten, not yet passed on
  std::optional<Clock::time_point> emitted_;  // when the last state was
  bool after_return_ = false;                 // the last byte was '\r'
  bool is_rewritten_ = false;                 // a state of this line was passed on
};

}  // namespace gradus::command
