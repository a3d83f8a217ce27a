// Messages of the library in Python's words: its options are written as C++ writes them, {.unbatched = true}.
#include <array>
#include <regex>
#include <utility>
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Replaced one after the other.
const std::array<std::pair<std::regex, const char*>, 8>& phrases() {
  static const std::array<std::pair<std::regex, const char*>, 8> all{{
      {std::regex(", capture it by reference, as in \\[&\\],? and pass it on by reference, as in const Sequential&"),
       ""},
      {std::regex("capture it by reference, as in \\[&\\]"), "refer to it, and make no copy of it"},
      {std::regex("\\{(\\.\\w+ = [^{}]*)\\}"), "$1"},  // {.a = 1, .b = 2}
      {std::regex("(^|[ (])\\.(\\w+) = true\\b"), "$1$2=True"},
      {std::regex("(^|[ (])\\.(\\w+) = false\\b"), "$1$2=False"},
      {std::regex("(^|[ (])\\.(\\w+) = "), "$1$2="},
      {std::regex("=[A-Z]\\w*::(\\w+)"), "='$1'"},  // an enum
      {std::regex("(^|[ (])\\.([a-z]+(_[a-z]+)+)(?![\\w(.])"),
       "$1$2"},  // .steps_per_epoch, but not .take(steps), .keras
  }};
  return all;
}

/// Longer messages, such as that of a fault with its graph, stay as they are: std::regex recurses.
constexpr std::size_t longest = 4096;

}  // namespace

std::string in_words_of_python(std::string_view message) {
  std::string said(message);
  if (said.size() > longest) return said;
  for (const auto& [phrase, words] : phrases()) said = std::regex_replace(said, phrase, words);
  return said;
}

}  // namespace gradus::python
