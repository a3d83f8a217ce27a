/// The files of an export: all are written, or none, whichever call of the system fails; places that cannot be right
/// are refused before the step is traced.
#include <gtest/gtest.h>
#include <cerrno>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"
#include "tests/export/loaded_object.h"
#include "tests/train/failing_calls.h"

namespace gradus::files_test {
namespace {

namespace fs = std::filesystem;

/// A number for the bytes of every file, by name; 0 for what is no file.
std::map<std::string, std::size_t> files_in(const fs::path& folder) {
  std::map<std::string, std::size_t> all;
  for (const auto& entry : fs::directory_iterator(folder))
    all[entry.path().filename().string()] =
        entry.is_regular_file() ? std::hash<std::string>()(read_text_file(entry.path())) : 0;
  return all;
}

/// Every write, fsync and rename of an export fails once, where there are files of an earlier export and where there
/// are none.
TEST(ExportFiles, EveryCallMayFail) {
  using Kind = FailingCalls::Kind;
  const auto export_to = [](const fs::path& folder, double factor) {
    Variable scale(full({2}, factor), "scale");
    const auto f = function([&](Tensor x) { return reduce_sum(x * scale.value() * factor); });
    f.export_object(folder / "step", {{f32, {2}}},
                    {.weights = folder / "step.weights", .declarations = text("/* ", factor, " */\n")});
  };
  for (const bool is_new : {true, false})
    for (const Kind kind : {Kind::write, Kind::fsync, Kind::rename}) {
      int calls = 1;
      for (int number = 0; number < calls; ++number) {
        SCOPED_TRACE(text(is_new, " ", static_cast<int>(kind), " ", number));
        const fs::path folder = export_folder();
        if (!is_new) export_to(folder, 2);
        const auto before = files_in(folder);
        EXPECT_EQ(before.size(), is_new ? 0U : 3U);
        {
          const FailingCalls failing({.kind = kind, .number = number, .reason = number % 2 ? EIO : ENOSPC});
          if (number % 2 == 0) EXPECT_THROW(export_to(folder, 3), ResourceExhausted);
          else if (kind == Kind::write)
            EXPECT_THROW(export_to(folder, 3), Error);  // the linker's files are written, too
          else EXPECT_THROW(export_to(folder, 3), Unavailable);
        }
        EXPECT_EQ(files_in(folder), before);
        const FailingCalls counting({});
        export_to(folder, 3);
        calls = FailingCalls::calls(kind);
        const auto after = files_in(folder);
        EXPECT_EQ(after.size(), 3U);
        for (const char* name : {"step.o", "step.h", "step.weights"})
          EXPECT_TRUE(is_new || after.at(name) != before.at(name)) << name;
      }
      EXPECT_GE(calls, 3);
    }
}

}  // namespace
}  // namespace gradus::files_test
