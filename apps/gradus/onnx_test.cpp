/// `gradus onnx-test`.
#include <iostream>
#include "apps/gradus/commands.h"
#include "gradus/base/error.h"
#include "gradus/onnx/suite.h"

namespace gradus::command {

int onnx_test(const OnnxTestArguments& arguments) {
  using Outcome = onnx::Verdict::Outcome;
  std::int64_t counts[3] = {};
  for (const std::filesystem::path& directory : onnx::find_cases(arguments.directories)) {
    const onnx::Verdict verdict = onnx::run_case(directory);
    ++counts[static_cast<int>(verdict.outcome)];
    constexpr const char* words[] = {"PASS ", "FAIL ", "UNSUPPORTED "};
    std::cout << words[static_cast<int>(verdict.outcome)] << printable(directory.string(), true);
    if (!verdict.why.empty()) std::cout << ": " << printable(verdict.why, true);
    std::cout << std::endl;
  }
  const auto count = [&](Outcome outcome) { return counts[static_cast<int>(outcome)]; };
  std::cout << count(Outcome::passed) << " passed, " << count(Outcome::failed) << " failed, "
            << count(Outcome::unsupported) << " skipped\n";
  return count(Outcome::failed) ? failed : ok;
}

}  // namespace gradus::command
