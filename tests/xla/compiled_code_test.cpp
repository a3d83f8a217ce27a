/// Code in files, of which some are not what they were; code of sizes that vary.
#include "gradus/backend/xla/compiled_code.h"
#include <deque>
#include <fstream>
#include <numeric>
#include "gradus/backend/backend.h"
#include "gradus/backend/xla/plugins.h"
#include "gradus/backend/xla/xla_executable.h"
#include "gradus/base/input_file.h"
#include "tests/test_directory.h"
#include "tests/xla/plugin.h"

namespace gradus::compiled_code_test {
namespace {

namespace fs = std::filesystem;

class CodeInFiles : public testing_plugin::WithPlugin {
 protected:
  void SetUp() override {
    WithPlugin::SetUp();
    setenv("GRADUS_XLA_CACHE", folder_.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("GRADUS_XLA_CACHE"); }
  static std::shared_ptr<const xla::StableHloModule> module_of(const char* op) {
    const Graph graph = parse_graph(text("%0 = input : f32[7,3]\n%1 = ", op, " %0 : f32[7,3]\nreturn %1\n"));
    return std::make_shared<const xla::StableHloModule>(xla::to_stablehlo(graph, {}, "x"));
  }
  /// The device as one of which nothing is known in memory. The process keeps it.
  const xla::DeviceGroup& fresh() const {
    static auto* all = new std::deque<xla::DeviceGroup>;
    return all->emplace_back(std::vector{&xla::device_of_plugin(device())});
  }
  /// How many compilations it takes to have the code.
  std::int64_t compilations(const char* op) {
    done();
    EXPECT_NE(xla::compiled_code(fresh(), module_of(op)), nullptr);
    return done().compilations;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) all.push_back(entry.path());
    return all;
  }
  const EmptyTestDirectory folder_;
};

TEST_F(CodeInFiles, ThatIsNotWhatItWasIsCompiledAnew) {
  EXPECT_EQ(compilations("cos"), 1);
  ASSERT_EQ(files().size(), 1U);
  const fs::path file = files().front();
  const std::string whole = read_text_file(file);
  EXPECT_EQ(compilations("cos"), 0) << "the file is the code";
  fs::rename(file, folder_.path() / "kept");
  EXPECT_EQ(compilations("sin"), 1);
  ASSERT_EQ(files().size(), 2U);
  fs::path another = files().front().filename() == "kept" ? files().back() : files().front();
  ASSERT_NE(another, file);

  const std::size_t code = whole.find("\n\n") + 2;
  const auto flipped = [&](std::size_t place) {
    std::string bytes = whole;
    bytes.at(place) = static_cast<char>(bytes.at(place) ^ 1);
    return bytes;
  };
  const std::pair<const char*, std::string> wrong[] = {
      {"nothing", ""},
      {"half of the head", whole.substr(0, code / 2)},
      {"the head alone", whole.substr(0, code)},
      {"half of the code", whole.substr(0, code + (whole.size() - code) / 2)},
      {"without the last byte", whole.substr(0, whole.size() - 1)},
      {"with one byte more", whole + "\n"},
      {"another key", flipped(2)},
      {"another checksum", flipped(code - 3)},
      {"another first byte", flipped(code)},
      {"another byte", flipped(code + (whole.size() - code) / 2)},
      {"another last byte", flipped(whole.size() - 1)},
      {"no file of ours", std::string(4096, '\n')},
      {"code of another program", read_text_file(another)},
  };
  for (const auto& [what, bytes] : wrong) {
    SCOPED_TRACE(what);
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_EQ(compilations("cos"), 1);
    EXPECT_EQ(compilations("cos"), 0) << "it was written again";
  }
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(compilations("cos"), 1) << "which cannot be stored";
  EXPECT_EQ(compilations("cos"), 1);
}

/// Otherwise the process would run code that others put there. A file that cannot be kept is reported once.
TEST_F(CodeInFiles, IsNotTakenFromAFolderThatOthersCanWrite) {
  EXPECT_EQ(compilations("cos"), 1);
  EXPECT_EQ(compilations("cos"), 0);
  fs::permissions(folder_.path(), fs::perms::all);
  testing::internal::CaptureStderr();
  EXPECT_EQ(compilations("cos"), 1);
  EXPECT_EQ(compilations("cos"), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("gradus: GRADUS_XLA_CACHE: " + folder_.path().string() + " can be written by other users"), 0U)
      << said;
  EXPECT_NE(said.find("`chmod go-w "), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  fs::permissions(folder_.path(), fs::perms::owner_all);
  EXPECT_EQ(compilations("cos"), 0);
  fs::permissions(files().front(), fs::perms::all);
  EXPECT_EQ(compilations("cos"), 1) << "a file that others can write is none";
}

TEST_F(CodeInFiles, ThatCannotBeKeptIsSaid) {
  std::ofstream(folder_.path() / "file") << "no folder";
  setenv("GRADUS_XLA_CACHE", (folder_.path() / "file").c_str(), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(compilations("sin"), 1);
  EXPECT_EQ(compilations("sin"), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("gradus: GRADUS_XLA_CACHE: " + (folder_.path() / "file").string() + " cannot be made: "), 0U)
      << said;
  EXPECT_NE(said.find("; compiled code is not kept\n"), std::string::npos) << said;
}

/// Its own checksum is right, but the plugin does not take it.
TEST_F(CodeInFiles, ThatThePluginRefusesIsCompiledAnew) {
  EXPECT_EQ(compilations("cos"), 1);
  const fs::path file = files().front();
  const std::string whole = read_text_file(file), key = whole.substr(0, whole.find('\n'));
  const std::string code = "no code";
  const std::uint64_t hash = hash_of_bytes(std::as_bytes(std::span(code.data(), code.size())));
  std::ofstream(file, std::ios::binary) << text(key, '\n', code.size(), ' ', hash, "\n\n", code);
  EXPECT_EQ(compilations("cos"), 1);
  EXPECT_EQ(compilations("cos"), 0);
}

// ---------------------------------------------------------------- sizes

using CodeOfSizes = testing_plugin::WithPlugin;
using Sizes = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t most_sizes = 16;

/// From the one that was used longest ago.
TEST_F(CodeOfSizes, KeepsThoseThatWereUsedLast) {
  const Device there = device();
  const xla::XlaExecutable program(parse_graph("%0 = input : f32[s0,3]\n%1 = multiply %0 %0 : f32[s0,3]\nreturn %1\n"),
                                   {}, there.kind);
  const auto run = [&](std::int64_t rows) {
    const Spec spec{f32, {rows, 3}};
    Ref<Buffer> host = Buffer::allocate(bytes_of(spec));
    std::fill_n(static_cast<float*>(host->data()), 3 * rows, 3.0f);
    std::vector<Ref<Buffer>> in{backend_of(there).from_host(there, std::move(host), spec)}, out(1);
    const std::vector<std::int64_t> symbols{rows};
    program.run(in, out, {.symbols = symbols, .device = there});
    EXPECT_EQ(Tensor::of_buffer(spec, Buffer::on_host(out[0])).to_vector<float>(),
              std::vector<float>(static_cast<std::size_t>(3 * rows), 9.0f));
  };
  Sizes expected;
  for (std::int64_t rows = 1; rows <= most_sizes; ++rows) {
    run(rows);
    expected.push_back({rows});
  }
  EXPECT_EQ(program.compiled_sizes(), expected);
  const auto used = [&](std::int64_t rows) {
    run(rows);
    std::erase(expected, std::vector{rows});
    if (std::ssize(expected) == most_sizes) expected.erase(expected.begin());
    expected.push_back({rows});
    EXPECT_EQ(program.compiled_sizes(), expected) << rows;
  };
  for (const std::int64_t rows : {1, 7, 1, 17, 1, 18, 2, 19, 1, 3}) used(rows);
  EXPECT_EQ(expected.front(), std::vector<std::int64_t>{8}) << "1 and 7 are still there, 2 and 3 again";
}

/// A compilation for each size, one variant of the function; the C++ runs where a size is new, to see that it is the
/// same program.
TEST_F(CodeOfSizes, ThatVaryAreOneVariant) {
  const DeviceScope scope(device());
  set_seed(3);
  Sequential model{Dense(5, {.activation = tanh}), Dense(4)};
  model.build({f32, {any_size, 6}});
  SGD optimizer({.learning_rate = 0.1});
  int runs_of_the_code = 0;
  const auto step = function(
      [&](Tensor x, Tensor labels) {
        ++runs_of_the_code;
        GradientTape tape;
        Loss loss = Loss::mean(sparse_categorical_crossentropy(labels, model(x, training), from_logits));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      },
      {.input_signature = {{f32, {any_size, 6}}, {i32, {any_size}}}});
  const auto run = [&](std::int64_t rows) {
    const Tensor x = from_values(std::vector<float>(static_cast<std::size_t>(6 * rows), 0.5f), {rows, 6});
    const Tensor labels = from_values(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 1), {rows});
    done();
    step(x, labels).item();
    return done().compilations;
  };
  run(20);
  for (std::int64_t rows = 21; rows < 45; ++rows) EXPECT_EQ(run(rows), 1) << rows;
  const int runs_before = runs_of_the_code;
  for (std::int64_t rows = 45 - most_sizes; rows < 45; ++rows) EXPECT_EQ(run(rows), 0) << rows;
  EXPECT_EQ(runs_of_the_code, runs_before) << "no size is new";
  const std::string explained = text(step.explain());
  EXPECT_NE(explained.find(": 1 variant, "), std::string::npos) << explained;
  EXPECT_EQ(explained.find("retrace"), std::string::npos) << explained;
  EXPECT_NE(explained.find("code for the sizes 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44"),
            std::string::npos)
      << explained;
  for (const char* untrue : {"caches hold", "in turns", "formulas a kernel", " 0.0 us"})
    EXPECT_EQ(explained.find(untrue), std::string::npos) << untrue << " in " << explained;
}

}  // namespace
}  // namespace gradus::compiled_code_test
