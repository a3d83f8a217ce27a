#include "apps/gradus/queued_output.h"
#include <limits.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace gradus::command {

void QueuedOutput::add(int descriptor, std::string_view lines) {
  if (lines.empty() || (descriptor == STDOUT_FILENO && error_ != 0)) return;
  constexpr std::size_t enough_of_a_piece = 1 << 16;
  bytes_ += lines.size();
  if (!is_empty() && pieces_.back().descriptor == descriptor && pieces_.back().bytes.size() < enough_of_a_piece)
    pieces_.back().bytes += lines;
  else pieces_.push_back({descriptor, std::string(lines)});
}

void QueuedOutput::write_some() {
  if (is_empty()) return;
  Piece& next = pieces_.front();
  const std::size_t some = std::min<std::size_t>(PIPE_BUF, next.bytes.size() - next.written);  // never waits for a pipe
  const ssize_t count = ::write(next.descriptor, next.bytes.data() + next.written, some);
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN) return;
    if (next.descriptor == STDOUT_FILENO) error_ = errno;
    leave_out(next.descriptor);  // a failure of standard error cannot be reported
    return;
  }
  next.written += static_cast<std::size_t>(count);
  if (next.written < next.bytes.size()) return;
  bytes_ -= next.bytes.size();
  pieces_.pop_front();
}

void QueuedOutput::drop() {
  pieces_.clear();
  bytes_ = 0;
}

void QueuedOutput::leave_out(int descriptor) {
  std::erase_if(pieces_, [&](const Piece& piece) {
    const bool is_left_out = piece.descriptor == descriptor;
    if (is_left_out) bytes_ -= piece.bytes.size();
    return is_left_out;
  });
}

}  // namespace gradus::command
