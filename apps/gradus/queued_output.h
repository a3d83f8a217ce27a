/// Lines that wait until standard output or error takes them: writing them never waits for a reader.
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace gradus::command {

/// In one order for both descriptors, so that a line is whole where both are the same terminal or file.
class QueuedOutput {
 public:
  void add(int descriptor, std::string_view lines);
  bool is_empty() const { return pieces_.empty(); }
  /// More should not be added before some is written.
  bool is_full() const { return bytes_ >= most_bytes; }
  /// Where the next bytes go; -1 if there are none.
  int descriptor() const { return is_empty() ? -1 : pieces_.front().descriptor; }
  /// Writes as much as a descriptor takes at once which poll has found ready.
  void write_some();
  void drop();
  /// The error that standard output had, 0 without one: then all of it is left out.
  int error() const { return error_; }

 private:
  static constexpr std::size_t most_bytes = 1 << 20;

  struct Piece {
    int descriptor;
    std::string bytes;
    std::size_t written = 0;
  };
  void leave_out(int descriptor);

  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;  // of all pieces
  int error_ = 0;
};

}  // namespace gradus::command
