// Messages of the library in Python's words: its options are written as C++ writes them, {.unbatched = true}.
#include <array>
#include <regex>
#include <utility>
#include "python/src/binding.h"

namespace gradus::python {
namespace {

/// Whole phrases, and Python's.
constexpr std::pair<std::string_view, std::string_view> whole[] = {
    {" C++ branches on tensor values in one call, each of them a guard",
     " tests of tensors by Python's `if` and `while` in one call, each of them a guard"},
    {"paths through its C++ branches on tensor values",
     "paths through its tests of tensors by Python's `if` and `while`"},
    {"values a while_loop, one of known length a scan, and a branch a cond",
     "values a tf.while_loop, one of known length a tf.scan, and a branch a tf.cond"},
    {"a C++ branch on it cannot be taken", "Python's `if` and `while` cannot test it"},
    {"a C++ branch cannot be taken", "Python's `if` and `while` cannot test it"},
    {"C++ cannot branch on it", "Python's `if` and `while` cannot test it"},
    {"use cond(", "use tf.cond("},
    {"or where(", "or tf.where("},
    {"a C++ loop counts with a size that varies; write it as a scan",
     "a loop of Python counts with a size that varies; write it as tf.while_loop or tf.scan"},
    {"in C++ and starts", "in Python and starts"},
    {"TrainingSteps{.train = train_step, .test = test_step}", "a model with train_step and test_step"},
    {"function that gives Logs and trains nothing, or TrainingSteps with .test",
     "test_step that gives the numbers, a dict, and trains nothing"},
    {"build() for layers that were unfrozen, or rebind() for a copied model",
     "optimizer.build(model.trainable_variables) for layers that were unfrozen"},
};

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
  for (const auto& [cpp, python] : whole)
    for (std::size_t at = said.find(cpp); at != std::string::npos; at = said.find(cpp, at + python.size()))
      said.replace(at, cpp.size(), python);
  if (said.size() > longest) return said;
  for (const auto& [phrase, words] : phrases()) said = std::regex_replace(said, phrase, words);
  return said;
}

}  // namespace gradus::python
