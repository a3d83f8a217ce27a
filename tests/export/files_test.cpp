/// The files of an export and the names in them: what cannot be written leaves all as it was, headers compile for any
/// Variables, and a state comes back to the Variables that it came from.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>
#include <set>
#include "gradus/formats/atomic_file.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/environment_variables.h"
#include "tests/export/loaded_object.h"

namespace gradus::files_test {
namespace {

namespace fs = std::filesystem;

std::string problem_of(const auto& attempt) {
  try {
    attempt();
  } catch (const Error& error) { return error.what(); }
  return "nothing was thrown";
}
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}
void expect_plain_c(const fs::path& folder, const std::string& source) {
  std::ofstream(folder / "c.c") << source;
  for (const char* way : {"cc -std=c99", "c++ -x c++"})
    EXPECT_EQ(
        std::system(text(way, " -Wall -Wextra -pedantic -Werror -fsyntax-only ", (folder / "c.c").string()).c_str()), 0)
        << way;
}

auto twice() {
  return function([](Tensor x) { return x * 2; });
}
const std::vector<Spec> two{{f32, {2}}};

TEST(ExportFiles, WhereOneCannotBeWrittenNoneIs) {
  for (const char* taken : {"step.o", "step.h", "weights"}) {
    const auto folder = export_folder();
    fs::create_directory(folder / taken);
    const std::string problem =
        problem_of([&] { twice().export_object(folder / "step", two, {.weights = folder / "weights"}); });
    EXPECT_NE(problem.find(text(taken, " cannot be written: Is a directory")), std::string::npos) << problem;
    EXPECT_EQ(names_in(folder), std::set<std::string>{taken});
  }
  const auto folder = export_folder();
  const std::string problem =
      problem_of([&] { twice().export_object(folder / "step", two, {.weights = folder / ""}); });
  EXPECT_NE(problem.find("Is a directory"), std::string::npos) << problem;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(ExportFiles, AFolderForWorkThatIsNotThereIsTold) {
  const auto folder = export_folder();
  const VariablesOfTest gone({{"TMPDIR", (folder / "none").string()}});
  const std::string problem = problem_of([&] { twice().export_object(folder / "step", two); });
  EXPECT_NE(problem.find("set TMPDIR to one that can be written"), std::string::npos) << problem;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(ExportFiles, WeightsAreNotTheObjectOrTheHeader) {
  for (const char* name : {"step.o", "step.h", "./step.o", "none/../step.h"}) {
    const auto folder = export_folder();
    const std::string problem =
        problem_of([&] { twice().export_object(folder / "step", two, {.weights = folder / name}); });
    EXPECT_NE(problem.find("of this stem: choose another name, such as step.weights"), std::string::npos) << problem;
    EXPECT_TRUE(fs::is_empty(folder));
  }
}

TEST(ExportFiles, APipeStaysAPipeAndALinkALink) {
  Variable w(constant({1.0F, 2.0F}), "w");
  const auto scaled = function([&](Tensor x) { return x * w; });
  const auto folder = export_folder();
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  scaled.export_object(folder / "step", two, {.weights = folder / "pipe"});
  float first[2] = {};
  EXPECT_EQ(read(reader, first, sizeof first), static_cast<ssize_t>(sizeof first));
  close(reader);
  EXPECT_EQ(first[1], 2);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));

  fs::create_directory(folder / "elsewhere");
  std::ofstream(folder / "elsewhere" / "object") << "old";
  fs::create_symlink(folder / "elsewhere" / "object", folder / "linked.o");
  scaled.export_object(folder / "linked", two);
  EXPECT_TRUE(fs::is_symlink(folder / "linked.o"));
  EXPECT_EQ(read_text_file(folder / "elsewhere" / "object").substr(1, 3), "ELF");
}

TEST(ExportFiles, NamesWithinEveryObjectAreNoStems) {
  const auto folder = export_folder();
  for (const char* stem : {"gradus_object_run", "gradus_object_facts", "gradus_tiles_avx2", "gradus_loops_0"}) {
    const std::string problem = problem_of([&] { twice().export_object(folder / stem, two); });
    EXPECT_NE(problem.find(text("choose another, such as step_", stem)), std::string::npos) << problem;
  }
  const auto step = twice();
  const std::string problem = problem_of([&] { export_objects(folder / "gradus", {{"object_run", step, two}}); });
  EXPECT_NE(problem.find("gradus_object_run begins as"), std::string::npos) << problem;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(ExportFiles, HeadersThatDifferInCaseAloneStandInOneProgram) {
  const auto folder = export_folder();
  twice().export_object(folder / "net", two);
  twice().export_object(folder / "NET", two);
  expect_plain_c(folder,
                 "#include \"net.h\"\n#include \"NET.h\"\nint both(void);\n"
                 "int both(void) { return net_supported() + NET_supported(); }\n");
}

/// C has no empty arrays: the member has an element, which moves none behind it.
TEST(ExportFiles, EmptyVariablesMoveNoOthers) {
  for (const DType t : {u8, f32, f64}) {
    Variable none(zeros({0, 3}, t), "none"), count(constant({1.0F, 2.0F}), "count");
    const auto step = function([&](Tensor x) {
      count.assign(count + x);
      none.assign(none * 2);
      return reduce_sum(count);
    });
    const auto folder = export_folder();
    const ObjectFiles files = step.export_object(folder / "step", two);
    const StateLayout layout = state_layout(read_text_file(files.header));
    std::string expected;
    for (const StateField& field : layout.fields)
      expected += text("_Static_assert(offsetof(struct step_state, ", field.name, ") == ", field.offset, ", \"\");\n");
    std::ofstream(folder / "c.c") << "#include <stddef.h>\n#include \"step.h\"\n"
                                  << expected << "_Static_assert(sizeof(struct step_state) == " << layout.bytes
                                  << ", \"\");\n";
    EXPECT_EQ(std::system(text("cc -std=c11 -fsyntax-only ", (folder / "c.c").string()).c_str()), 0) << t;
  }
}

/// Where C's int is too small for the number of elements of an argument.
TEST(ExportFiles, LargeArgumentsAreDeclared) {
  const auto folder = export_folder();
  const auto first = function([](Tensor x) { return reduce_sum(x(0, 0)); });
  first.export_object(folder / "step", {{u8, {50000, 50000}}});
  expect_plain_c(folder, "#include \"step.h\"\n");
}

/// The bytes of a state whose fields have these values.
void write_state(const fs::path& file, const StateLayout& layout, const std::vector<float>& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.bytes));
  for (std::size_t k = 0; k < layout.fields.size(); ++k)
    std::memcpy(bytes.data() + layout.fields[k].offset, &values[k], sizeof(float));
  AtomicFile state(file);
  state.write(bytes);
  state.commit();
}

TEST(ExportFiles, VariablesOfOneNameComeBackInAnyOrder) {
  const auto folder = export_folder();
  Variable first(constant(1.0F), "w"), second(constant(2.0F), "w"), other(constant({1.0F, 2.0F}), "w");
  const auto sum = function([&](Tensor x) { return reduce_sum(x * first + second * 2); });
  const ObjectFiles files = sum.export_object(folder / "sum", two);
  write_state(folder / "state", state_layout(read_text_file(files.header)), {10, 20});
  for (const Variables& given : {Variables{first, second}, Variables{second, first}, Variables{second, other, first}}) {
    first.assign(constant(0.0F)), second.assign(constant(0.0F));
    load_object_state(folder / "state", files.header, given);
    EXPECT_EQ(first.value().item(), 10);
    EXPECT_EQ(second.value().item(), 20);
  }
  Variable third(constant(3.0F), "w");
  const std::string problem =
      problem_of([&] { load_object_state(folder / "state", files.header, Variables{third, second, first}); });
  EXPECT_NE(problem.find("3 variables f32[] have the name `w`, and the header has 2 fields of it"), std::string::npos)
      << problem;
  EXPECT_NE(problem_of([&] {
              load_object_state(folder / "state", files.header, Variables{first});
            }).find("there is no variable `w`"),
            std::string::npos);
  EXPECT_EQ(first.value().item(), 10);
  EXPECT_EQ(third.value().item(), 3);
}

TEST(ExportFiles, NamesThatACommentCannotHaveComeBack) {
  for (const std::string name : {"a*/b", "/*", "a\nb", " a ", "a  b", "end?\?/", ""}) {
    const auto folder = export_folder();
    Variable w(constant(1.0F), name);
    const auto scaled = function([&](Tensor x) { return x * w; });
    const ObjectFiles files = scaled.export_object(folder / "step", two);
    expect_plain_c(folder, "#include \"step.h\"\n");
    write_state(folder / "state", state_layout(read_text_file(files.header)), {10});
    load_object_state(folder / "state", files.header, {w});
    EXPECT_EQ(w.value().item(), 10) << name;
  }
}

}  // namespace
}  // namespace gradus::files_test
