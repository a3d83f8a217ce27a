/// Variables of the environment, changed for a test.
#pragma once
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace gradus {

/// Changed while it lives; nothing: unset. Afterwards they are as they were, whatever was set meanwhile.
class VariablesOfTest {
 public:
  VariablesOfTest(std::initializer_list<std::pair<std::string, std::optional<std::string>>> changed) {
    for (const auto& [name, value] : changed) {
      const char* const before = std::getenv(name.c_str());
      before_.try_emplace(name, before != nullptr ? std::optional<std::string>(before) : std::nullopt);
      set(name, value);
    }
  }
  ~VariablesOfTest() {
    for (const auto& [name, value] : before_) set(name, value);
  }
  VariablesOfTest(const VariablesOfTest&) = delete;
  VariablesOfTest& operator=(const VariablesOfTest&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) setenv(name.c_str(), value->c_str(), 1);
    else unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace gradus
