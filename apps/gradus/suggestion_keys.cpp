#include "apps/gradus/suggestion_keys.h"
#include <array>
#include <string_view>

namespace gradus::command {
namespace {

/// The remedy of a lever in a configuration.
struct KeyOfLever {
  std::string_view lever, key;
};
constexpr std::array keys{
    KeyOfLever{"input", "`data.cache = true` keeps examples that were made once"},
    KeyOfLever{"prefetch", "`data.prefetch = true`"},
    KeyOfLever{"parallel map", "`data.num_parallel_calls = 0`"},
    KeyOfLever{"cache", "`data.cache = true`"},
    KeyOfLever{"compile", "`train.run_eagerly = false`"},
    KeyOfLever{"fixed sizes", "a `train.batch_size` that divides the number of examples makes the sizes equal"},
    KeyOfLever{"batch size", "a larger `train.batch_size`"},
    KeyOfLever{"replicas", "a larger `train.batch_size`"}};

}  // namespace

void name_keys(ProfileReport& report, const DataConfig& data) {
  for (Suggestion& suggestion : report.suggestions) {
    suggestion.remedy.clear();
    for (const auto& [lever, key] : keys)
      if (suggestion.lever == lever && !(lever == "input" && data.cache))
        suggestion.remedy = text("in the configuration: ", key);
  }
}

}  // namespace gradus::command
