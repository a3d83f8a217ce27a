/// Folders of code that is run: a folder that other users own or can write is refused, with a remedy.
#include "gradus/base/code_folder.h"
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::code_folder_test {
namespace {

namespace fs = std::filesystem;

class CodeFolders : public testing::Test {
 protected:
  CodeFolders() { chmod(root_.c_str(), 0700); }
  fs::path folder(const fs::path& name, mode_t mode = 0700) const {
    fs::create_directories(root_ / name);
    EXPECT_EQ(chmod((root_ / name).c_str(), mode), 0);
    return root_ / name;
  }
  const EmptyTestDirectory directory_;
  const fs::path root_ = fs::canonical(directory_.path());
};

TEST_F(CodeFolders, AreMadeForThisUserAlone) {
  const mode_t before = umask(0);
  const CodeFolder made = code_folder(root_ / "made");
  umask(before);
  EXPECT_EQ(made.problem, "");
  EXPECT_EQ(made.path, root_ / "made");
  struct stat status{};
  ASSERT_EQ(stat(made.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(code_folder(root_ / "made" / "").path, made.path) << "the same with a slash behind it";
  EXPECT_EQ(code_folder(root_ / "in" / "others").problem, "");
}

TEST_F(CodeFolders, ThatOthersCanWriteAreRefused) {
  struct Row {
    mode_t mode;
    bool is_taken;
  };
  for (const Row& row : {Row{0700, true}, {0755, true}, {0500, true}, {0777, false}, {0707, false}, {01777, false}}) {
    const fs::path named = folder("one", row.mode);
    const CodeFolder found = code_folder(named);
    EXPECT_EQ(found.problem.empty(), row.is_taken) << std::oct << row.mode;
    EXPECT_EQ(found.path.empty(), !row.is_taken);
    if (row.is_taken) continue;
    expect_says(found.problem, named.string() + " can be written by other users (mode ");
    expect_says(found.problem, "`chmod go-w " + named.string() + "`");
  }
}

/// Users that can write a parent folder can put another folder in its place.
TEST_F(CodeFolders, BelowOneThatOthersCanWriteAreRefused) {
  folder("above", 0777);
  const fs::path below = folder("above/below");
  expect_says(code_folder(below).problem, (root_ / "above").string() + " can be written by other users (mode 777)");
  folder("above", 01777);  // like /tmp
  EXPECT_EQ(code_folder(below).problem, "");
  folder("above", 0777);
  fs::create_symlink(below, root_ / "link");
  expect_says(code_folder(root_ / "link").problem, (root_ / "above").string() + " can be written");
}

TEST_F(CodeFolders, OfAGroupAreRefusedUnlessItIsThisUsersAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root gives folders to other groups";
  const fs::path named = folder("of a group", 0770);
  ASSERT_EQ(chown(named.c_str(), 0, 12345), 0);
  expect_says(code_folder(named).problem, "can be written by other users (mode 770)");
  ASSERT_EQ(chown(named.c_str(), 0, 0), 0);
  EXPECT_EQ(code_folder(named).problem, "");
}

TEST_F(CodeFolders, OfAnotherUserAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root gives folders to other users";
  const fs::path named = folder("of another");
  ASSERT_EQ(chown(named.c_str(), 65534, 65534), 0);
  expect_says(code_folder(named).problem, named.string() + " belongs to user 65534");
  expect_says(code_folder(named).problem, "name a folder of your own");
  fs::create_directories(named / "below");
  expect_says(code_folder(named / "below").problem, named.string() + " belongs to user 65534");
}

TEST_F(CodeFolders, ThatCannotBeAreNamedWithTheReason) {
  std::ofstream(root_ / "file") << "no folder";
  expect_says(code_folder(root_ / "file").problem, (root_ / "file").string() + " cannot be made: ");
  expect_says(code_folder(root_ / "file" / "below").problem, "below cannot be made: ");
  fs::create_symlink(root_ / "nowhere", root_ / "link");
  expect_says(code_folder(root_ / "link").problem, "link cannot be made: File exists");
}

TEST_F(CodeFolders, FilesOfOthersInThemAreNone) {
  const fs::path file = folder("files") / "code";
  EXPECT_FALSE(is_own_file(file));
  std::ofstream(file) << "code";
  EXPECT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_TRUE(is_own_file(file));
  EXPECT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_FALSE(is_own_file(file));
  EXPECT_EQ(chmod(file.c_str(), 0644), 0);
  fs::create_symlink(file, root_ / "files" / "link");
  EXPECT_FALSE(is_own_file(root_ / "files" / "link"));
  EXPECT_FALSE(is_own_file(root_ / "files"));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(is_own_file(file));
}

}  // namespace
}  // namespace gradus::code_folder_test
