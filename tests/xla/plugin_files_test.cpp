/// Where plugins are looked for, in folders that are made up.
#include "gradus/backend/xla/plugin_files.h"
#include <fstream>
#include "gradus/gradus.h"
#include "tests/environment_variables.h"
#include "tests/test_directory.h"

namespace gradus::xla::plugin_files_test {
namespace {

namespace fs = std::filesystem;

/// A folder with a Python, and what the environment says of plugins. Afterwards it is as it was before.
class PluginSearch : public testing::Test {
 protected:
  PluginSearch() { add_python(root_); }
  void add(const fs::path& file, const std::string& text = "") const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  /// A virtual environment: no other packages belong to it.
  void add_python(const fs::path& prefix) const {
    add(prefix / "bin/python3",
        "\x7f"
        "ELF");
    add(prefix / "pyvenv.cfg");
  }
  void use_python(const fs::path& prefix) const {
    setenv("PATH", text((root_ / "nowhere").string(), "::", (root_ / prefix / "bin").string()).c_str(), 1);
  }
  /// "name file found_in problem", below the folder.
  std::vector<std::string> found() const {
    std::vector<std::string> all;
    for (const PluginFile& file : plugin_files()) {
      const std::string path = file.path.string(), root = root_.string() + "/";
      all.push_back(text(file.name, ' ', path.starts_with(root) ? path.substr(root.size()) : path,
                         file.problem.empty() ? "" : " " + file.problem));
    }
    return all;
  }

  const EmptyTestDirectory directory_;
  const fs::path& root_ = directory_.path();
  const VariablesOfTest variables_{{"PATH", (root_ / "nowhere").string()},
                                   {"HOME", std::nullopt},
                                   {"PYENV_VERSION", std::nullopt},
                                   {"TPU_LIBRARY_PATH", std::nullopt},
                                   {"PJRT_NAMES_AND_LIBRARY_PATHS", std::nullopt}};
};

using Found = std::vector<std::string>;
const fs::path packages = "lib/python3.12/site-packages";

TEST_F(PluginSearch, FindsNothingWhereNothingIs) {
  EXPECT_EQ(found(), Found{});
  use_python("");
  EXPECT_EQ(found(), Found{});
}

TEST_F(PluginSearch, FindsPackagesOfThePythonOnThePath) {
  use_python("");
  add(packages / "jax_plugins/xla_cuda12/xla_cuda_plugin.so");
  add(packages / "jax_plugins/xla_cuda12/__init__.py");
  add(packages / "jax_plugins/xla_cuda12/_versions.so");
  add(packages / "jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  add(packages / "jax_plugins/other/pjrt_c_api_other.so");
  add(packages / "jax_plugins/empty/readme.txt");
  add(packages / "libtpu/libtpu.so");
  add("lib/python3.12/dist-packages/jax_plugins/debian/debian_plugin.so");
  add("lib/perl5/site-packages/jax_plugins/perl/perl_plugin.so");
  const Found all = found();
  const std::string in = packages.string() + "/";
  EXPECT_EQ(all, (Found{"cuda " + in + "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
                        "cuda " + in + "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
                        "other " + in + "jax_plugins/other/pjrt_c_api_other.so", "tpu " + in + "libtpu/libtpu.so",
                        "debian lib/python3.12/dist-packages/jax_plugins/debian/debian_plugin.so"}));
}

TEST_F(PluginSearch, AsksTheEnvironmentFirst) {
  use_python("");
  add(packages / "libtpu/libtpu.so");
  setenv("TPU_LIBRARY_PATH", (root_ / "own/libtpu.so").c_str(), 1);
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", text("a:/one.so,b:", (root_ / "two.so").string(), ",a:/one.so").c_str(), 1);
  EXPECT_EQ(found(),
            (Found{"a /one.so", "b two.so", "tpu own/libtpu.so", "tpu " + (packages / "libtpu/libtpu.so").string()}));
  EXPECT_EQ(plugin_files()[0].found_in, "PJRT_NAMES_AND_LIBRARY_PATHS");
  EXPECT_EQ(plugin_files()[2].found_in, "TPU_LIBRARY_PATH");
}

TEST_F(PluginSearch, TellsOfEntriesThatAreNone) {
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", ",nothing,:/x.so,late:,,good:/y:z.so", 1);
  const auto wrong = [](const std::string& entry) {
    return text(entry, "  PJRT_NAMES_AND_LIBRARY_PATHS: `", entry, "` is not name:path");
  };
  EXPECT_EQ(found(), (Found{wrong("nothing"), wrong(":/x.so"), wrong("late:"), "good /y:z.so"}));
}

/// pyenv: a script that starts the version which a file names.
TEST_F(PluginSearch, GoesThroughPyenv) {
  add("pyenv/shims/python3", "#!/bin/sh\n");
  add("pyenv/version", "3.11.4\n");
  for (const char* version : {"3.11.4", "3.10.0"}) {
    add_python(text("pyenv/versions/", version));
    add(text("pyenv/versions/", version, "/lib/python3.1/site-packages/jax_plugins/p/p_plugin.so"));
  }
  setenv("PATH", (root_ / "pyenv/shims").c_str(), 1);
  EXPECT_EQ(found(), Found{"p pyenv/versions/3.11.4/lib/python3.1/site-packages/jax_plugins/p/p_plugin.so"});
  setenv("PYENV_VERSION", "3.10.0", 1);
  EXPECT_EQ(found(), Found{"p pyenv/versions/3.10.0/lib/python3.1/site-packages/jax_plugins/p/p_plugin.so"});
  setenv("PYENV_VERSION", "2.7", 1);
  EXPECT_EQ(found(), Found{});
}

TEST(PluginNames, SayWhatTheyDrive) {
  for (const char* name : {"cuda", "rocm", "gpu", "xla_cuda13"}) EXPECT_EQ(kind_of_name(name), DeviceKind::gpu) << name;
  for (const char* name : {"tpu", "libtpu"}) EXPECT_EQ(kind_of_name(name), DeviceKind::tpu) << name;
  for (const char* name : {"xla", "metal", "", "tpux"}) EXPECT_EQ(kind_of_name(name), DeviceKind::plugin) << name;
}

}  // namespace
}  // namespace gradus::xla::plugin_files_test
