/// Names and states of an export: headers compile for any names of Variables, and a state comes back to the Variables
/// that it came from.
#include <gtest/gtest.h>
#include <cstring>
#include <fstream>
#include "gradus/formats/atomic_file.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/environment_variables.h"
#include "tests/export/loaded_object.h"

namespace gradus::state_names_test {
namespace {

namespace fs = std::filesystem;

std::string problem_of(const auto& attempt) {
  try {
    attempt();
  } catch (const Error& error) { return error.what(); }
  return "nothing was thrown";
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

TEST(ExportNames, AFolderForWorkThatIsNotThereIsTold) {
  const auto folder = export_folder();
  const VariablesOfTest gone({{"TMPDIR", (folder / "none").string()}});
  const std::string problem = problem_of([&] { twice().export_object(folder / "step", two); });
  EXPECT_NE(problem.find("set TMPDIR to one that can be written"), std::string::npos) << problem;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(ExportNames, NamesWithinEveryObjectAreNoStems) {
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

/// Where C's int is too small for the number of elements of an argument.
TEST(ExportNames, LargeArgumentsAreDeclared) {
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

TEST(ExportNames, VariablesOfOneNameComeBackInAnyOrder) {
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

TEST(ExportNames, NamesThatACommentCannotHaveComeBack) {
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
}  // namespace gradus::state_names_test
