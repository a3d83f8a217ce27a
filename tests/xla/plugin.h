/// The processor's PJRT plugin, which runs here what accelerators run elsewhere. Without it these tests are skipped.
#pragma once
#include <gtest/gtest.h>
#include "gradus/backend/plugin.h"
#include "gradus/backend/xla/counts.h"
#include "gradus/gradus.h"

namespace gradus::testing_plugin {

/// Its file: GRADUS_TEST_PLUGIN, which may be that of an accelerator, or where the build has installed it. Empty: it is
/// not there.
std::string file();
/// A device of it, once it is loaded.
Device device_of_plugin(int index = 0);

/// A test with its devices: of the processor's plugin, plugin:0 to plugin:3.
class WithPlugin : public ::testing::Test {
 protected:
  void SetUp() override;
  Device device(int index = 0) const { return device_of_plugin(index); }
  /// What was done since the test began, or since it last asked.
  struct Done {
    std::int64_t runs, on_host, compilations, uploads, waits;
  };
  Done done();

 private:
  Done before_{};
};

}  // namespace gradus::testing_plugin
