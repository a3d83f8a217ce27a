/// The calls of the system that write files, made to fail by tests: write, fsync and rename of this program.
#pragma once
#include <cstdint>
#include <limits>

namespace gradus {

/// While it lives.
class FailingCalls {
 public:
  enum class Kind { none, write, fsync, rename };
  struct Plan {
    Kind kind = Kind::none;
    int number = 0;                                                      // which call of that kind, from 0
    int reason = 0;                                                      // errno
    std::int64_t free_bytes = std::numeric_limits<std::int64_t>::max();  // a disk that is full after so many
  };
  explicit FailingCalls(Plan plan);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  /// How many there were so far.
  static int calls(Kind kind);
};

}  // namespace gradus
