/// Headers of object files: a C compiler and the library agree on the layout of a state, which may have arrays without
/// elements and of any size, and headers of several objects stand in one program.
#include <gtest/gtest.h>
#include <cstdio>
#include <fstream>
#include "gradus/backend/cpu/object/c_header.h"
#include "gradus/backend/cpu/processors.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/export/loaded_object.h"
#include "tests/new_process.h"

namespace gradus::header_test {
namespace {

constexpr std::string_view strictly = " -Wall -Wextra -pedantic -Werror ";

std::string output_of(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string all;
  for (int c; (c = std::fgetc(pipe)) != EOF;) all += static_cast<char>(c);
  return pclose(pipe) == 0 ? all : "it fails after: " + all;
}

/// Output of a program of `source` and of the objects in its folder.
std::string output_of_program(const std::filesystem::path& folder, const std::string& source) {
  std::ofstream(folder / "program.c") << source;
  const std::string in = folder.string();
  const std::string made = text("cc -std=c99", strictly, "-o ", in, "/program ", in, "/program.c ", in, "/*.o");
  if (std::system(made.c_str()) != 0) return "it does not compile";
  return output_of(command_to_run(in + "/program"));
}

/// Output of a program that has a `state` of the step in its folder, and runs `statements`.
std::string output_with_step(const std::filesystem::path& folder, const std::string& statements) {
  return output_of_program(folder,
                           text("#include <stddef.h>\n#include <stdio.h>\n#include \"step.h\"\nint main(void) {\n",
                                "  static struct step_state state;\n", statements, "}\n"));
}

/// Programs in C, where the compiler is for the processor that the tests run on, or that is emulated for them.
class ExportHeader : public testing::Test {
 protected:
  void SetUp() override {
    const std::string own = cpu_backend::is_own(cpu_backend::Isa::neon) ? "aarch64" : "x86_64";
    if (!output_of("cc -dumpmachine").starts_with(own)) GTEST_SKIP() << "cc compiles for another machine";
  }
};

/// "NAME OFFSET" of every field, and the bytes of all, as the library knows them.
std::string layout_told(const StateLayout& layout) {
  std::string all;
  for (const StateField& field : layout.fields) all += text(field.name, " ", field.offset, "\n");
  return text(all, "bytes ", layout.bytes, "\n");
}
/// Statements that print the same as C knows it.
std::string layout_printed(const std::string& stem, const StateLayout& layout) {
  std::string all;
  for (const StateField& field : layout.fields)
    all += text("  printf(\"", field.name, " %d\\n\", (int)offsetof(struct ", stem, "_state, ", field.name, "));\n");
  return text(all, "  printf(\"bytes %d\\n\", (int)sizeof(struct ", stem, "_state));\n");
}

/// A step that doubles Variables and picks an element: of a wrong index it says so in `failure`.
void expect_doubled_in_c(std::vector<Variable> variables) {
  const auto f = function([&](Tensor x, Tensor index) {
    for (Variable& v : variables) v.assign(v.value() * 2);
    return gather(x, index);
  });
  const auto folder = export_folder();
  const ObjectFiles files = f.export_object(folder / "step", {{f32, {3}}, {i32, {}}});
  const StateLayout layout = state_layout(read_text_file(files.header));
  EXPECT_EQ(layout.fields.size(), variables.size());
  std::string values, expected = layout_told(layout);
  for (const Variable& v : variables) {
    if (v.shape().size() == 0) continue;
    values += text("  printf(\"%g\\n\", state.", v.name(), "[1]);\n");
    expected += text(2 * v.value().to_vector<float>()[1], "\n");
  }
  const std::string statements = text(
      "  const float x[3] = {5, 6, 7};\n  const int32_t right = 2, wrong = 3;\n",
      "  if (!step_supported()) return 1;\n  step_init(&state);\n  printf(\"%g \", step(&state, x, &right));\n",
      "  printf(\"%d\\n\", (int)state.failure);\n", layout_printed("step", layout), values,
      "  (void)step(&state, x, &wrong);\n", "  printf(\"%d %d\\n\", (int)state.failure, (int)state.failure_value);\n",
      "  return offsetof(struct step_state, workspace) + sizeof state.workspace == sizeof state ? 0 : 2;\n");
  EXPECT_EQ(output_with_step(folder, statements), text("7 0\n", expected, "1 3\n"));
}

/// C has no empty arrays: such a field has one element in C, and all others are where the step has them.
TEST_F(ExportHeader, VariablesWithoutElementsMoveNoOtherField) {
  for (const std::size_t place : {0U, 1U, 2U})
    for (const DType t : {f32, f64, u8}) {
      SCOPED_TRACE(text(place, " ", t));
      std::vector<Variable> variables;
      for (const std::size_t k : {0U, 1U, 2U})
        if (k == place) variables.emplace_back(zeros({0, 3}, t), "empty");
        else variables.emplace_back(full({2}, 1.5 + static_cast<double>(k)), text("field_", k));
      expect_doubled_in_c(std::move(variables));
    }
  std::vector<Variable> alone;
  alone.emplace_back(zeros({0}), "empty");
  expect_doubled_in_c(std::move(alone));
  std::vector<Variable> two;
  two.emplace_back(zeros({0}), "empty"), two.emplace_back(zeros({3, 0}, f64), "another");
  expect_doubled_in_c(std::move(two));
}

TEST_F(ExportHeader, AStateMayHaveNoVariables) { expect_doubled_in_c({}); }

/// A weights file has the fields where the struct has them.
TEST_F(ExportHeader, WeightsFilesHaveFieldsWithoutElements) {
  const auto folder = export_folder();
  Variable empty(zeros({0, 3}), "empty"), scale(full({2}, 1.5), "scale");
  const auto f = function([&](Tensor x) { return reduce_sum(empty.value()) + reduce_sum(x * scale.value()); });
  f.export_object(folder / "step", {{f32, {2}}}, {.weights = folder / "step.weights"});
  const std::string statements = text(
      "  const float x[2] = {5, 6};\n  FILE* file = fopen(\"", (folder / "step.weights").string(), "\", \"rb\");\n",
      "  if (file == NULL || fread(&state, step_weights_bytes, 1, file) != 1 || fgetc(file) != EOF) return 1;\n",
      "  printf(\"%g %g\\n\", state.scale[1], step(&state, x));\n",
      "  return step_weights_bytes == offsetof(struct step_state, workspace) ? 0 : 2;\n");
  EXPECT_EQ(output_with_step(folder, statements), "1.5 16.5\n");
}

/// They are neither read nor written: a null pointer will do.
TEST_F(ExportHeader, ArgumentsAndResultsMayHaveNoElements) {
  const auto folder = export_folder();
  const Tensor captured = zeros({0, 3});
  const auto f = function([&](Tensor x, Tensor y) {
    return std::tuple(concat({x, captured}, 0) * 2, reduce_sum(x, {.axis = {0}}), y * 2, reduce_sum(y));
  });
  f.export_object(folder / "step", {{f32, {0, 3}}, {f32, {2}}});
  const std::string statements =
      text("  const float y[2] = {5, 6};\n  float sums[3], twice[2], all[1];\n",
           "  step_init(&state);\n  step(&state, NULL, y, NULL, sums, twice, all);\n",
           "  printf(\"%g %g %g %g %d\\n\", sums[0] + sums[1] + sums[2], twice[0], twice[1], all[0], ",
           "(int)state.failure);\n  return 0;\n");
  EXPECT_EQ(output_with_step(folder, statements), "0 10 12 11 0\n");
}

/// Stems that differ by case alone are different objects.
TEST_F(ExportHeader, HeadersOfSeveralObjectsStandInOneProgram) {
  const auto folder = export_folder();
  std::string includes, calls;
  double factor = 2;
  for (const std::string stem : {"net", "Net", "NET", "nEt_"}) {
    const auto f = function([&](Tensor x) { return reduce_sum(x) * factor; });
    f.export_object(folder / stem, {{f32, {2}}});
    includes += text("#include \"", stem, ".h\"\n");
    calls += text("  static struct ", stem, "_state of_", stem, ";\n  ", stem, "_init(&of_", stem,
                  ");\n  printf(\"%g \", ", stem, "(&of_", stem, ", x));\n");
    factor += 1;
  }
  EXPECT_EQ(
      output_of_program(folder, text("#include <stdio.h>\n", includes, includes,
                                     "int main(void) {\n  const float x[2] = {5, 6};\n", calls, "  return 0;\n}\n")),
      "22 33 44 55 ");
}

/// An array may have more elements than an int can count: the compiler computes sizes and offsets without any memory.
TEST(ExportHeaders, ArraysOfAnySizeAreValidC) {
  ObjectStep step{.name = "big", .graph = {}, .inputs = {}, .arguments = {}, .results = {}};
  step.arguments = {{f32, {65536, 32768}}, {f32, {2, 3}}};
  step.results = {{0, {f32, {3, 65536, 65536}}}, {1, {u8, {std::int64_t{1} << 32}}}};
  ObjectSteps all{.name = "big", .steps = {step}, .fields = {}};
  for (const auto& [name, spec] :
       std::initializer_list<std::pair<const char*, Spec>>{{"weights", {f32, {65536, 65536}}},
                                                           {"flat", {u8, {std::int64_t{1} << 33}}},
                                                           {"small", {f32, {2, 3}}},
                                                           {"empty", {f32, {0, std::int64_t{1} << 40}}},
                                                           {"most", {u8, {65536, 32767}}},
                                                           {"last", {f32, {}}}})
    all.fields.push_back({.name = name, .spec = spec, .now = {}});
  all.weights_file = "big.weights";
  object::Space state;
  object::StatePlaces places;
  for (const ObjectField& field : all.fields) places.fields.push_back(state.take(bytes_of(field.spec)));
  places.failure = state.take(24);
  places.workspace = state.end;
  const std::int64_t workspace = std::int64_t{5} << 30, bytes = places.workspace + workspace;
  const std::string header =
      object::to_c({.all = all, .places = places, .workspace_bytes = workspace, .bytes = bytes, .failures = {}});
  EXPECT_NE(header.find("float small[2 * 3];"), std::string::npos) << header;  // still readable
  EXPECT_NE(header.find("uint8_t most[65536 * 32767];"), std::string::npos) << header;

  const StateLayout layout = state_layout(header);
  EXPECT_EQ(layout.bytes, bytes);
  ASSERT_EQ(layout.fields.size(), all.fields.size());
  std::string program = "#include <stddef.h>\n#include \"big.h\"\n";
  int count = 0;
  const auto holds = [&](const std::string& what, std::int64_t value) {
    program += text("typedef char check_", count++, "[", what, " == UINT64_C(", value, ") ? 1 : -1];\n");
  };
  for (std::size_t k = 0; k < all.fields.size(); ++k) {
    const Spec& spec = all.fields[k].spec;
    EXPECT_EQ(layout.fields[k].spec, spec);
    EXPECT_EQ(layout.fields[k].offset, places.fields[k]);
    holds(text("offsetof(struct big_state, ", all.fields[k].name, ")"), places.fields[k]);
    holds(text("sizeof(((struct big_state*)0)->", all.fields[k].name, ")"),
          std::max(bytes_of(spec), size_of(spec.dtype)));
  }
  holds("offsetof(struct big_state, failure)", places.failure);
  holds("offsetof(struct big_state, workspace)", places.workspace);
  holds("sizeof(struct big_state)", bytes);
  holds("big_weights_bytes", places.workspace);
  const auto folder = export_folder();
  std::ofstream(folder / "big.h") << header;
  std::ofstream(folder / "big.c") << program;
  for (const char* way : {"cc -std=c99", "cc -std=c17", "c++ -std=c++11 -x c++", "c++ -std=c++20 -x c++"})
    EXPECT_EQ(std::system(text(way, strictly, "-fsyntax-only ", (folder / "big.c").string()).c_str()), 0) << way;
}

}  // namespace
}  // namespace gradus::header_test
