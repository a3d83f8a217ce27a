#include "tests/xla/plugin.h"
#include <cstdlib>
#include <filesystem>

namespace gradus::testing_plugin {

std::string file() {
#if defined(__SANITIZE_THREAD__)
  return "";  // ThreadSanitizer does not see how the plugin's threads, which were built without it, synchronize
#endif
  const char* const given = std::getenv("GRADUS_TEST_PLUGIN");
  const std::string path = given && *given ? given : GRADUS_PLUGIN_OF_THE_PROCESSOR;
  return std::filesystem::exists(path) ? path : "";
}

Device device_of_plugin(int index) {
  static const DeviceKind kind = load_plugin(file(), "xla").front().kind;
  return {kind, index};
}

void WithPlugin::SetUp() {
  if (file().empty())
    GTEST_SKIP() << "NOT TESTED: there is no PJRT plugin for the processor (`make xla-plugin` installs one, or set "
                    "GRADUS_TEST_PLUGIN)";
  load_plugin(file(), "xla");
  done();
}

WithPlugin::Done WithPlugin::done() {
  const xla::Counts& all = xla::counts();
  const Done now{all.runs, all.on_host, all.compilations, all.uploads, all.waits};
  const Done before = std::exchange(before_, now);
  return {now.runs - before.runs, now.on_host - before.on_host, now.compilations - before.compilations,
          now.uploads - before.uploads, now.waits - before.waits};
}

}  // namespace gradus::testing_plugin
