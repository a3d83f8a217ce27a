/// Standard output of the command: a result that did not arrive is a failure.
#pragma once
#include <memory>

namespace gradus::command {

/// While it lives, std::cout writes through it. One for a process, made before any file is opened: standard descriptors
/// that are closed are taken, so that no file comes to stand in their place.
class CheckedOutput {
 public:
  CheckedOutput();
  ~CheckedOutput();
  CheckedOutput(const CheckedOutput&) = delete;

  /// The exit status of a command that ended with `status`: if its output could not be written, `failed` in place of
  /// `ok`, and the reason on stderr; 141 if the reader has gone, as for a process that the signal ends.
  int finish(int status);

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

/// The exit status of a command whose output had this error, which is reported on stderr unless the reader has gone.
int status_without_output(int error);

}  // namespace gradus::command
