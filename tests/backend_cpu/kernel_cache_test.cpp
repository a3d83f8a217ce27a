/// Code that is not generated again: shared by the programs of a process, and kept on disk.
#include "gradus/backend/kernel_cache.h"
#include <filesystem>
#include <fstream>
#include "gradus/backend/cpu/codegen/code_files.h"
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "tests/backend_cpu/compiled.h"
#include "tests/errors.h"
#include "tests/instruction_sets.h"

namespace gradus::kernel_cache_test {
namespace {

using namespace testing_loops;
namespace fs = std::filesystem;

const char* const source =
    "%0 = input : f32[37,19]\n%1 = input : f32[19]\n%2 = broadcast{shape=[37,19]} %1 : f32[37,19]\n"
    "%3 = tanh %0 : f32[37,19]\n%4 = multiply %3 %2 : f32[37,19]\n%5 = sum{axis=-1} %4 : f32[37,1]\n"
    "%6 = sum{axis=-2} %3 : f32[1,19]\nreturn %4 %5 %6\n";

/// How many kernels are generated for the program of this graph, and whether it computes what the interpreter does.
std::int64_t generated_for(const Graph& graph, const std::vector<std::int64_t>& symbols = {}) {
  const auto inputs = random_inputs(graph, symbols, 5);
  const auto expected = run(*interpreted(graph), inputs, symbols);
  const std::int64_t before = cpu_backend::kernels_generated();
  const auto program = compiled(graph);
  const std::int64_t generated = cpu_backend::kernels_generated() - before;
  expect_same(*program, run(*program, inputs, symbols), expected, symbols, "");
  return generated;
}

TEST(SharedKernels, LiveAsLongAsAProgramThatUsesThem) {
  const Graph graph = parse_graph(source);
  {
    const auto program = compiled(graph);
    EXPECT_EQ(generated_for(graph), 0);
  }
  EXPECT_GT(generated_for(graph), 0);
}

TEST(SharedKernels, AreThoseOfOneInstructionSet) {
  const Graph graph = parse_graph(source);
  const auto program = compiled(graph, {.isa = narrowest_isa()});
  EXPECT_EQ(generated_for(graph) > 0, cpu_backend::isa() != narrowest_isa());
}

/// The second program has the sizes in other places of its table.
TEST(SharedKernels, FindSizesOfTheProgramThatRuns) {
  const Graph first = parse_graph("%0 = input : f32[s0,s1]\n%1 = sum{axis=-1} %0 : f32[s0,1]\nreturn %1\n");
  const Graph second = parse_graph(
      "%0 = input : f32[s1,s0]\n%1 = input : f32[s0,s1]\n%2 = sum{axis=-2} %0 : f32[1,s0]\n"
      "%3 = sum{axis=-1} %1 : f32[s0,1]\nreturn %2 %3\n");
  const std::int64_t alone = generated_for(second, {40, 70});
  const auto program = compiled(first);
  EXPECT_LT(generated_for(second, {40, 70}), alone);
  EXPECT_LT(generated_for(second, {3, 33000}), alone);
}

TEST(SharedKernels, DoNotKnowIntoWhichDimensionsRowsAreDivided) {
  const auto sums = [](const std::string& shape, const std::string& of_rows) {
    return parse_graph("%0 = input : f32[" + shape + ",70]\n%1 = exp %0 : f32[" + shape + ",70]\n" +
                       "%2 = sum{axis=-1} %1 : f32[" + of_rows + "]\nreturn %1 %2\n");
  };
  const auto program = compiled(sums("40", "40,1"));
  EXPECT_EQ(generated_for(sums("5,8", "5,8,1")), 0);
  EXPECT_EQ(generated_for(sums("2,4,5", "2,4,5,1")), 0);
  EXPECT_GT(generated_for(sums("41", "41,1")), 0);
}

/// Sums along columns of other values, of other places of the table, and of several at once.
TEST(SharedKernels, ThatCombinePartialResultsDoNotKnowOfWhat) {
  const auto sums = [](const std::string& op, const std::string& rows, const std::string& columns) {
    const std::string wide = "f32[" + rows + "," + columns + "]";
    return parse_graph("%0 = input : " + wide + "\n%1 = input : " + wide + "\n%2 = " + op + " %1 : " + wide +
                       "\n%3 = sum{axis=-2} %2 : f32[1," + columns + "]\nreturn %3\n");
  };
  for (const char* columns : {"1", "7", "16", "50", "1000", "s0"}) {
    const std::vector<std::int64_t> symbols(*columns == 's' ? 1 : 0, 33);
    const auto program = compiled(sums("exp", "100", columns));
    const std::int64_t alone = generated_for(sums("tanh", "101", columns), symbols);
    EXPECT_EQ(generated_for(sums("tanh", "100", columns), symbols), alone - 1) << columns;
  }
  const Graph two = parse_graph(
      "%0 = input : f32[100,50]\n%1 = exp %0 : f32[100,50]\n%2 = sum{axis=-2} %1 : f32[1,50]\n"
      "%3 = cast{to=f64} %0 : f64[100,50]\n%4 = sum{axis=-2} %3 : f64[1,50]\n%5 = max{axis=-2} %1 : f32[1,50]\n"
      "return %2 %4 %5\n");
  const auto program = compiled(sums("exp", "100", "50"));
  EXPECT_GT(generated_for(two), 0);
}

/// What nobody reads has no memory: here only a barrier names it.
TEST(SharedKernels, ThatCombinePartialResultsAreOfThoseThatAreRead) {
  const std::string sums =
      "%0 = input : f32[100,50]\n%1 = input : f32[50]\n%2 = exp %0 : f32[100,50]\n"
      "%3 = sum{axis=-2} %2 : f32[1,50]\n%4 = max{axis=-2} %2 : f32[1,50]\n%5 = barrier %1 %4 : f32[50]\n"
      "%6 = tanh %5 : f32[50]\n";
  const Graph one = parse_graph(sums + "return %3 %6\n"), both = parse_graph(sums + "return %3 %4 %6\n");
  for (const auto& [first, second] : {std::pair(&one, &both), {&both, &one}}) {
    const auto program = compiled(*first);
    generated_for(*second);
  }
}

/// So many layers of a product, a bias, an activation and a normalisation of rows, with what later ones need kept.
Graph layers(int count) {
  std::string text = "%0 = input : f32[8,64]\n%1 = input : f32[64,64]\n%2 = input : f32[64]\n";
  int next = 3, x = 0;
  const auto add = [&](const std::string& op, const std::string& spec) {
    text += "%" + std::to_string(next) + " = " + op + " : f32[" + spec + "]\n";
    return "%" + std::to_string(next++);
  };
  for (int layer = 0; layer < count; ++layer) {
    const std::string in = "%" + std::to_string(x);
    const std::string product = add("matmul{transpose_a=false; transpose_b=false} " + in + " %1", "8,64");
    const std::string bias = add("broadcast{shape=[8,64]} %2", "8,64");
    const std::string active = add("tanh " + add("add " + product + " " + bias, "8,64"), "8,64");
    const std::string sum = add("sum{axis=-1} " + active, "8,1");
    add("subtract " + active + " " + add("broadcast{shape=[8,64]} " + sum, "8,64"), "8,64");
    x = next - 1;
  }
  return parse_graph(text + "return %" + std::to_string(x) + "\n");
}

TEST(SharedKernels, OfLayersThatAreAlikeAreGeneratedOnce) {
  const auto generated = [](int count) {
    const std::int64_t before = cpu_backend::kernels_generated();
    const auto program = cpu_backend::compile(layers(count));
    return cpu_backend::kernels_generated() - before;
  };
  const std::int64_t of_one = generated(1);
  EXPECT_GT(of_one, 0);
  for (int count : {2, 5, 20}) EXPECT_LE(generated(count), of_one + 1) << count;  // the last one writes an output
}

TEST(SharedKernels, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = parse_graph(source);
  for (int threads : {1, 2, 5}) {
    const Threads scope(threads);
    EXPECT_GT(generated_for(graph), 0) << threads;
  }
}

/// Neither does the program with kernels of its own find others, nor do others find it.
TEST(SharedKernels, CanBeSwitchedOff) {
  const Graph graph = parse_graph(source);
  const auto inputs = random_inputs(graph, {}, 5);
  const std::int64_t before = cpu_backend::kernels_generated();
  const auto own = cpu_backend::compile(graph, {.disable = {"share"}});
  const std::int64_t all = cpu_backend::kernels_generated() - before;
  EXPECT_GT(all, 0);
  const auto shared = cpu_backend::compile(graph), other = cpu_backend::compile(graph, {.disable = {"share"}});
  EXPECT_EQ(cpu_backend::kernels_generated() - before, 3 * all);
  expect_same(*own, run(*own, inputs), run(*shared, inputs), {}, "own kernels");
  expect_same(*other, run(*other, inputs), run(*shared, inputs), {}, "own kernels again");
}

/// A directory of its own, and the cache in it.
class KernelFiles : public testing::Test {
 protected:
  KernelFiles() : directory_(fs::temp_directory_path() / text("gradus-kernels-", getpid())) {
    fs::remove_all(directory_);
    set_kernel_cache(directory_ / "inner");
  }
  ~KernelFiles() override {
    set_kernel_cache({});
    fs::remove_all(directory_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_ / "inner")) found.push_back(entry.path());
    return found;
  }
  /// What generating `graph` leaves: one file. Throws, which ends the test, if there is none.
  fs::path only_file_of(const Graph& graph) const {
    EXPECT_GT(generated_for(graph), 0);
    const std::vector<fs::path> found = files();
    EXPECT_EQ(found.size(), 1u);
    return found.at(0);
  }
  static std::string content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary).write(content.data(), std::ssize(content));
  }
  const fs::path directory_;
};

TEST_F(KernelFiles, AreReadInPlaceOfGenerating) {
  const Graph graph = parse_graph(source);
  EXPECT_GT(generated_for(graph), 0);
  EXPECT_FALSE(files().empty());
  EXPECT_EQ(generated_for(graph), 0);
  set_kernel_cache({});
  EXPECT_GT(generated_for(graph), 0);
}

TEST_F(KernelFiles, ServeOneInstructionSetAndOneProgram) {
  const Graph graph = parse_graph(source);
  (void)compiled(graph, {.isa = narrowest_isa()});
  EXPECT_EQ(generated_for(graph) > 0, cpu_backend::isa() != narrowest_isa());
  EXPECT_GT(generated_for(parse_graph("%0 = input : f64[9]\n%1 = tanh %0 : f64[9]\nreturn %1\n")), 0);
}

TEST_F(KernelFiles, OfAnyDamageAreMadeAnew) {
  const Threads one(1);
  const Graph graph = parse_graph("%0 = input : f32[50]\n%1 = negative %0 : f32[50]\nreturn %1\n");
  const fs::path path = only_file_of(graph);
  const std::string whole = content_of(path);
  const auto check = [&](const std::string& damaged, const std::string& where) {
    write(path, damaged);
    EXPECT_GT(generated_for(graph), 0) << where;
    EXPECT_EQ(content_of(path), whole) << where;
  };
  for (std::size_t at = 0; at < whole.size(); at += at < 40 ? 1 : 331) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    check(damaged, text("byte ", at));
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{17}, whole.size() / 2, whole.size() - 1})
    check(whole.substr(0, length), text("length ", length));
  check(whole + "x", "longer");
  fs::remove(path);
  fs::create_directory(path);  // can neither be read nor replaced
  EXPECT_GT(generated_for(graph), 0);
}

/// Whole, with the right sums, of just this source: but what stands there is no code, or lacks the kernel.
TEST_F(KernelFiles, ThatDoNotLinkAreMadeAnew) {
  const Threads one(1);
  const Graph graph = parse_graph("%0 = input : f32[50]\n%1 = negative %0 : f32[50]\nreturn %1\n");
  const fs::path path = only_file_of(graph);
  const std::string whole = content_of(path);
  std::uint64_t source_bytes = 0;
  std::memcpy(&source_bytes, whole.data() + 16, sizeof source_bytes);
  const auto check = [&](const std::string& object) {
    const std::uint64_t sums[] = {source_bytes, object.size(), hash_of(std::string_view(object))};
    std::string changed = whole.substr(0, 40 + source_bytes) + object;
    std::memcpy(changed.data() + 16, sums, sizeof sums);
    write(path, changed);
    EXPECT_GT(generated_for(graph), 0);
    EXPECT_EQ(content_of(path), whole);
  };
  const std::string object = whole.substr(40 + source_bytes);
  check("");
  check(std::string(1000, 'x'));
  std::string renamed = object;
  const std::size_t name = renamed.find("kernel0");
  ASSERT_NE(name, std::string::npos);
  renamed.replace(name, 7, "another");
  check(renamed);
}

/// As where somebody switches the cache off while code is generated.
TEST_F(KernelFiles, GoWhereTheyWereGoingToGo) {
  const fs::path directory = cpu_backend::code_files::directory();
  EXPECT_EQ(directory, directory_ / "inner");
  set_kernel_cache({});
  EXPECT_TRUE(cpu_backend::code_files::directory().empty());
  cpu_backend::code_files::write(directory, "source", "object");
  EXPECT_EQ(cpu_backend::code_files::read(directory, "source").value_or("nothing"), "object");
  EXPECT_FALSE(cpu_backend::code_files::read(directory, "another source").has_value());
  EXPECT_EQ(files().size(), 1u);
}

/// Otherwise the process would run code that others put there.
TEST_F(KernelFiles, NeedADirectoryThatOthersCannotWrite) {
  const fs::path open = directory_ / "open";
  fs::create_directories(open);
  fs::permissions(open, fs::perms::all);
  const std::string message = error_of<InvalidArgument>([&] { set_kernel_cache(open); });
  expect_says(message, "can be written by other users (mode 777)");
  expect_says(message, "`chmod go-w ");
  const Graph graph = parse_graph(source);
  EXPECT_GT(generated_for(graph), 0);
  EXPECT_EQ(generated_for(graph), 0) << "the directory of before stays";
  for (const fs::path& file : files()) fs::permissions(file, fs::perms::all);
  EXPECT_GT(generated_for(graph), 0) << "files that others could have written are none";
}

TEST_F(KernelFiles, NeedADirectory) {
  write(directory_ / "file", "");
  EXPECT_THROW(set_kernel_cache(directory_ / "file" / "inner"), InvalidArgument);
}

}  // namespace
}  // namespace gradus::kernel_cache_test
