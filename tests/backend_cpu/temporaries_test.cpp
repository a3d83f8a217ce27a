/// Memory of temporaries: what is written over what, what is stored anew instead of being kept, and that no bit
/// changes.
#include <gtest/gtest.h>
#include <cstdlib>
#include <cstring>
#include "gradus/tensor/heap.h"
#include "tests/backend_cpu/compiled.h"
#include "tests/backend_cpu/random_graphs.h"
#include "tests/joined_pages.h"
#include "tests/new_process.h"

namespace gradus::temporaries_test {
namespace {

using namespace testing_loops;

const std::string product = " = matmul{transpose_a=false; transpose_b=false} ";

/// Products with formulas between them, each of which may be written over what it reads.
Graph products_and_formulas(const std::string& rows, const std::string& columns) {
  const std::string wide = "f32[" + rows + "," + columns + "]", flat = "f32[1," + rows + "," + columns + "]";
  return parse_graph("%0 = input : " + wide + "\n%1 = input : f32[" + columns + "," + columns + "]\n%2" + product +
                     "%0 %1 : " + wide + "\n%3 = tanh %2 : " + wide + "\n%4" + product + "%3 %1 : " + wide +
                     "\n%5 = reshape{shape=[1," + rows + "," + columns + "]} %4 : " + flat +
                     "\n%6 = square %5 : " + flat + "\n%7 = sum{axis=-1} %6 : f32[1," + rows +
                     ",1]\n%8 = broadcast{shape=[1," + rows + "," + columns + "]} %7 : " + flat +
                     "\n%9 = subtract %5 %8 : " + flat + "\n%10 = reshape{shape=[" + rows + "," + columns +
                     "]} %9 : " + wide + "\n%11" + product + "%10 %1 : " + wide + "\nreturn %11\n");
}

/// The same bits with and without `pass`, of one, two and three threads.
void expect_same_bits(const Graph& graph, const std::string& pass, unsigned seed,
                      const std::vector<std::int64_t>& symbols = {}, std::vector<std::string> disable = {}) {
  const auto inputs = random_inputs(graph, symbols, seed);
  const auto program = cpu_backend::compile(graph, {.disable = disable});
  disable.push_back(pass);
  const auto plain = cpu_backend::compile(graph, {.disable = disable});
  EXPECT_LE(program->report(symbols).temporary_bytes, plain->report(symbols).temporary_bytes);
  const auto expected = run(*plain, inputs, symbols);
  for (int threads : {1, 2, 3}) {
    const Threads scope(threads);
    expect_same(*program, run(*program, inputs, symbols), expected, symbols, text(threads, " threads"));
  }
}

TEST(Temporaries, AreWrittenOverWhatIsReadForTheLastTime) {
  const Graph graph = products_and_formulas("64", "48");
  const std::vector<std::string> apart{"epilogues"};  // else the first product stands in no memory
  EXPECT_EQ(cpu_backend::compile(graph, {.disable = apart})->report().temporary_bytes,
            2 * 64 * 48 * 4);  // read and written by a product
  const std::string line = "%0 = input : f32[64,48]\n%1 = input : f32[48,48]\n%2" + product +
                           "%0 %1 : f32[64,48]\n%3 = tanh %2 : f32[64,48]\n%4" + product +
                           "%3 %1 : f32[64,48]\nreturn %4\n";
  EXPECT_EQ(cpu_backend::compile(parse_graph(line), {.disable = apart})->report().temporary_bytes, 64 * 48 * 4);
  EXPECT_EQ(cpu_backend::compile(parse_graph(line), {.disable = {"reuse", "epilogues"}})->report().temporary_bytes,
            2 * 64 * 48 * 4);
}

TEST(Temporaries, AreNotWrittenOverWhatOthersStillRead) {
  const std::string head = "%0 = input : f32[64,48]\n%1 = input : f32[48,48]\n%2" + product +
                           "%0 %1 : f32[64,48]\n%3 = tanh %2 : f32[64,48]\n%4" + product + "%3 %1 : f32[64,48]\n%5" +
                           product + "%2 %1 : f32[64,48]\n";
  const Graph side_by_side = parse_graph(head + "return %4 %5\n");
  EXPECT_EQ(cpu_backend::compile(side_by_side)->report().temporary_bytes, 2 * 64 * 48 * 4);  // %2 and %3
  expect_same_bits(side_by_side, "reuse", 3);
  const Graph moved = parse_graph("%0 = input : f32[48,48]\n%1" + product +
                                  "%0 %0 : f32[48,48]\n%2 = transpose{order=[0,1]} %1 : f32[48,48]\n" +
                                  "%3 = add %1 %2 : f32[48,48]\n%4" + product + "%3 %0 : f32[48,48]\nreturn %4\n");
  EXPECT_EQ(cpu_backend::compile(moved)->report().temporary_bytes,
            2 * 48 * 48 * 4);  // read in another order than it is written
  expect_same_bits(moved, "reuse", 5);
}

/// Packed operands of the product lie where the second sum will.
TEST(Temporaries, LeaveRoomForTheScratchOfOtherStages) {
  const Threads scope(1);
  const std::string head =
      "%0 = input : f32[512,256]\n%1 = input : f32[256,256]\n%2" + product + "%0 %1 : f32[512,256]\n";
  const auto alone = cpu_backend::compile(parse_graph(head + "return %2\n"));
  EXPECT_EQ(alone->report().temporary_bytes, 0);
  EXPECT_GT(alone->report().arena_bytes, 0);
  const Graph graph = parse_graph(head + "%3 = cumsum{axis=-1; exclusive=false; reverse=false} %2 : f32[512,256]\n" +
                                  "%4 = cumsum{axis=-2; exclusive=false; reverse=false} %3 : f32[512,256]\n" +
                                  "%5 = sum{axis=-1} %4 : f32[512,1]\nreturn %5\n");
  const auto program = cpu_backend::compile(graph);
  EXPECT_EQ(program->report().temporary_bytes, 2 * 512 * 256 * 4);
  EXPECT_EQ(program->report().arena_bytes, program->report().temporary_bytes);
  expect_same_bits(graph, "reuse", 9);
}

TEST(Temporaries, WrittenOverOthersHaveTheSameBits) {
  for (const auto& [rows, columns] : {std::pair(0, 5), {1, 1}, {3, 0}, {5, 1}, {1, 1000}, {7, 17}, {33, 65}, {65, 31}})
    expect_same_bits(products_and_formulas(std::to_string(rows), std::to_string(columns)), "reuse",
                     static_cast<unsigned>(rows + columns));
  const Graph open = products_and_formulas("s0", "17");
  for (std::int64_t rows : {0, 1, 8, 70}) expect_same_bits(open, "reuse", 9, {rows});
}

TEST(Temporaries, OfRandomGraphsHaveTheSameBits) {
  const Shape bases[] = {{5, 17}, {33, 64}, {1, 7}, {3, 0}, {4, 3, 70}, {2, 1000}};
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Graph graph = RandomGraph(seed, bases[seed % std::size(bases)]).make(14);
    expect_same_bits(graph, "reuse", seed, {}, {"fuse"});
    expect_same_bits(graph, "reuse", seed);
    if (HasFatalFailure()) return;
  }
}

/// A formula of a product that is read at once and once more behind a kernel that has the better part of it.
Graph far_apart(const std::string& type) {
  return parse_graph("%0 = input : " + type + "\n%1" + product + "%0 %0 : " + type + "\n%2 = square %1 : " + type +
                     "\n%3 = multiply %2 %1 : " + type + "\n%4" + product + "%3 %0 : " + type + "\n%5" + product +
                     "%4 %0 : " + type + "\n%6" + product + "%5 %0 : " + type + "\n%7 = multiply %6 %2 : " + type +
                     "\n%8" + product + "%3 %7 : " + type + "\nreturn %8\n");
}

/// What open sizes are taken for, to see what is worth it, may be too little for some shape: then that is empty.
TEST(Temporaries, OfSizesThatAreAtLeastSoLarge) {
  const std::string wide = "f32[s0,320]", cut = "f32[s0-300,320]";
  const std::string common = "%0 = input : " + wide + "\n%1 = input : f32[320,320]\n%2" + product + "%0 %1 : " + wide +
                             "\n%3 = square %2 : " + wide + "\n%4 = multiply %3 %2 : " + wide + "\n%5" + product +
                             "%4 %1 : " + wide + "\n%6" + product + "%5 %1 : " + wide +
                             "\n%7 = multiply %6 %3 : " + wide + "\n%8" + product + "%7 %1 : " + wide;
  const Graph graph =
      parse_graph(common + "\n%9 = slice{begin=[300,0]; size=[s0-300,320]} %8 : " + cut + "\n%10 = exp %9 : " + cut +
                  "\n%11" + product + "%10 %1 : " + cut + "\nreturn %11 %4\n");
  for (std::int64_t rows : {300, 301, 777}) expect_same_bits(graph, "remake", 4, {rows});
}

/// Longer lives may leave more gaps: then they lie apart.
TEST(Temporaries, WrittenOverOthersNeedNoMore) {
  for (unsigned seed = 5380; seed < 5400; ++seed) {
    const Graph graph = RandomGraph(seed, {24, 35}).make(25);
    const auto bytes = [&](std::vector<std::string> disable) {
      return cpu_backend::compile(graph, {.disable = std::move(disable), .tier = Tier::interpreted})
          ->report()
          .temporary_bytes;
    };
    EXPECT_LE(bytes({}), bytes({"reuse"})) << seed;
  }
}

TEST(Temporaries, StoredAnewHaveTheSameBits) {
  const Graph graph = far_apart("f32[1033,1033]");  // nothing divides it
  const auto kept = cpu_backend::compile(graph, {.disable = {"remake"}}), program = cpu_backend::compile(graph);
  EXPECT_LE(program->report().temporary_bytes + 1033 * 1033 * 4, kept->report().temporary_bytes);
  expect_same_bits(graph, "remake", 4);
}

#if !defined(__SANITIZE_ADDRESS__)
/// In a process of its own, since a heap settles once.
TEST(TemporariesDeathTest, RunsJoinThePagesOfMemoryByAndBy) {
  if (!system_joins_pages()) GTEST_SKIP() << "this system joins no pages when it is asked to";
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(
      {
        const Ref<Buffer> held = Buffer::allocate(90 << 20);
        std::memset(held->data(), 1, 90 << 20);
        const auto program = cpu_backend::compile(products_and_formulas("4", "4"));
        const auto inputs = random_inputs(program->graph(), {}, 1);
        const int runs = 5;
        for (int i = 0; i < runs; ++i) run(*program, inputs, {});
        const std::int64_t left = heap::settle(1 << 30);  // the first run joins none, each other one a huge page
        std::_Exit(left >= (45 - 1 - runs) * heap::huge_page_bytes && left < 50 * heap::huge_page_bytes ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace gradus::temporaries_test
