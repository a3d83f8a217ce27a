#include "apps/gradus/output.h"
#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <iostream>
#include <streambuf>
#include <system_error>
#include "apps/gradus/commands.h"
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"

namespace gradus::command {

/// Remembers the first error of writing.
class CheckedOutput::Buffer : public std::streambuf {
 public:
  Buffer() { setp(held_.data(), held_.data() + held_.size()); }
  ~Buffer() override { std::cout.rdbuf(before_); }

  /// Ensures that the last write has arrived, too: some file systems report failures only when a file is closed.
  int close() {
    sync();
    if (::close(STDOUT_FILENO) != 0 && error_ == 0 && was_used_) error_ = errno;
    return error_;
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const char* from = pbase();
    while (error_ == 0 && from < pptr()) {
      was_used_ = true;
      const ssize_t count = ::write(STDOUT_FILENO, from, static_cast<std::size_t>(pptr() - from));
      if (count >= 0) from += count;
      else if (errno != EINTR) error_ = errno;
    }
    setp(held_.data(), held_.data() + held_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  std::array<char, 1 << 16> held_;
  int error_ = 0;
  bool was_used_ = false;
  std::streambuf* const before_ = std::cout.rdbuf(this);
};

namespace {

/// With descriptors that can only be used the wrong way round, so that using them fails.
void take_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      (void)open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

CheckedOutput::CheckedOutput() {
  take_closed_descriptors();
  buffer_ = std::make_unique<Buffer>();
}
CheckedOutput::~CheckedOutput() = default;

int CheckedOutput::finish(int status) {
  const int error = buffer_->close();
  if (error == 0) return status;
  const int without_output = status_without_output(error);
  return status == ok ? without_output : status;
}

int status_without_output(int error) {
  if (error == EPIPE) return reader_gone;
  notice(
      text("gradus: the result cannot be written to standard output: ", std::generic_category().message(error), '\n'));
  return failed;
}

}  // namespace gradus::command
