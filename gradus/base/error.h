/// The two kinds of failure: a user's mistake (Error and its types) and a fault of the library itself (InternalError).
/// A message names the op, layer or file, the expected and the given value, and the fix.
#pragma once
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradus {

/// `text` with control characters as `\x1b`, since names in a file may contain them and a terminal obeys them. New
/// lines and tabs stay unless `in_one_line`.
std::string printable(std::string_view text, bool in_one_line = false);

/// A mistake that the user can fix.
class Error : public std::runtime_error {
 public:
  /// The message is made printable.
  explicit Error(const std::string& message) : std::runtime_error(printable(message)) {}
  explicit Error(const char* message) : std::runtime_error(printable(message)) {}
};
/// An argument that does not fit: shape, dtype, handle, option.
class InvalidArgument : public Error {
  using Error::Error;
};
/// An index or axis outside its range; a value that a type cannot hold.
class OutOfRange : public Error {
  using Error::Error;
};
/// A file or a data set whose contents are wrong.
class DataError : public Error {
  using Error::Error;
};
/// Memory, disk, or another bounded resource is used up.
class ResourceExhausted : public Error {
  using Error::Error;
};
/// A file, directory or device that does not exist or may not be used.
class Unavailable : public Error {
  using Error::Error;
};
/// Training left the finite numbers.
class Diverged : public Error {
  using Error::Error;
};
/// A fault of the library.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

/// A stream for text that reads the same everywhere: numbers without the grouping and the decimal comma of the caller's
/// global locale, which every other stream has. It is the only stream for text in files, keys and messages.
class TextStream : public std::ostringstream {
 public:
  TextStream() { imbue(std::locale::classic()); }
};

/// The parts as one text, by a TextStream.
template <class... Parts> std::string text(const Parts&... parts) {
  TextStream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// The message of the exception that is being handled, whatever its type.
std::string message_of_current();

/// True for the exceptions of this library, and for those that C++'s own library throws at sizes that are negative, as
/// the open sizes of traces are. The library may try another way after these; all others come from the user's code and
/// are passed on.
bool is_of_library(const std::exception& error);

/// Throws a user's error of type E unless `ok`. The message is built only on failure.
template <class E = InvalidArgument, class... Parts> void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw E(text(parts...));
}

/// Throws an InternalError unless `ok`.
template <class... Parts> void internal_check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw InternalError(text("internal fault: ", parts...));
}

/// A place in a user's program: std::source_location, which clang before 16 lacks.
struct SourcePlace {
  const char* file;  // its path
  int line;          // from 1
  /// The place of the call.
  static constexpr SourcePlace here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Throws Error with `message` and the place of the call unless `condition`; also in release builds.
void check(bool condition, std::string_view message, SourcePlace where = SourcePlace::here());

}  // namespace gradus
