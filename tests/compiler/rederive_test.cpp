/// What is computed again instead of being kept for a later kernel, and that no bit changes by it.
#include "gradus/compiler/rederive.h"
#include <gtest/gtest.h>
#include "gradus/compiler/passes.h"

namespace gradus::rederive_test {
namespace {

struct Row {
  const char* name;
  std::string before, after;  // empty: nothing changes
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class Rederive : public testing::TestWithParam<Row> {};

TEST_P(Rederive, AsWritten) {
  Graph graph = parse_graph(GetParam().before);
  const std::vector<Step> before = fuse(graph, true), steps = rederive(graph, before);
  verify(graph);
  EXPECT_EQ(to_text(graph), to_text(parse_graph(GetParam().after.empty() ? GetParam().before : GetParam().after)));
  EXPECT_EQ(steps.size(), before.size());
}

const std::string product = " = matmul{transpose_a=false; transpose_b=false} ";

/// %0 * %0, two formulas of it and a product of the second; then something that reads the first.
std::string network(const std::string& type, const std::string& end) {
  return "%0 = input : " + type + "\n%1" + product + "%0 %0 : " + type + "\n%2 = square %1 : " + type +
         "\n%3 = multiply %2 %1 : " + type + "\n%4" + product + "%3 %0 : " + type + "\n" + end;
}
const std::string large = "f32[512,512]", small = "f32[64,64]";

/// `op` of %0 * %0, a product of that, and a formula of this one and `op`, which may be computed again for it.
std::string kept_for_later(const std::string& op, bool again) {
  const std::string of_type = " : " + large + "\n", y = again ? "%5" : "%2", k = again ? "%6" : "%5",
                    last = again ? "%7" : "%6";
  return "%0 = input" + of_type + "%1" + product + "%0 %0" + of_type + "%2 = " + op + " %1" + of_type +
         "%3 = multiply %2 %1" + of_type + "%4" + product + "%3 %0" + of_type +
         (again ? "%5 = " + op + " %1" + of_type : "") + k + " = tanh_grad " + y + " %4" + of_type + last +
         " = multiply " + k + " %1" + of_type + "return " + last + "\n";
}

/// As above, but the formula is read early, beside its argument, and late, without it: it stays in memory for the
/// latter.
std::string shared_with_another() {
  const std::string of_type = " : " + large + "\n";
  return "%0 = input" + of_type + "%1" + product + "%0 %0" + of_type + "%2 = tanh %1" + of_type +
         "%3 = multiply %2 %1" + of_type + "%4" + product + "%3 %0" + of_type + "%5 = tanh_grad %2 %4" + of_type +
         "%6 = multiply %5 %1" + of_type + "%7" + product + "%6 %0" + of_type + "%8 = tanh_grad %2 %7" + of_type +
         "return %8\n";
}

const Row rows[] = {
    {"AFormulaOfWhatIsThere", network(large, "%5 = multiply %4 %2 : " + large + "\nreturn %5\n"),
     network(large, "%5 = square %1 : " + large + "\n%6 = multiply %4 %5 : " + large + "\nreturn %6\n")},
    {"NothingThatStaysInTheCaches", network(small, "%5 = multiply %4 %2 : " + small + "\nreturn %5\n"), ""},
    {"NotWhatAProductReads", network(large, "%5 = multiply %4 %3 : " + large + "\nreturn %5\n"), ""},
    {"NotWhatIsYieldedAnyway", network(large, "%5 = multiply %4 %2 : " + large + "\nreturn %5 %2\n"), ""},
    {"NotWhatIsReadInAnotherOrder",
     network(large, "%5 = transpose{order=[0,1]} %2 : " + large + "\n%6 = multiply %4 %5 : " + large + "\nreturn %6\n"),
     ""},
    {"AWholeChain",
     network(large, "%5 = negative %2 : " + large + "\n%6 = multiply %4 %5 : " + large + "\nreturn %6\n"),
     network(large, "%5 = square %1 : " + large + "\n%6 = negative %5 : " + large + "\n%7 = multiply %4 %6 : " + large +
                        "\nreturn %7\n")},
    {"AMaskByWhatStandsInMemoryForAProduct",
     "%0 = input : " + large + "\n%1" + product + "%0 %0 : " + large + "\n%2 = square %1 : " + large +
         "\n%3 = less %1 %2 : bool[512,512]\n%4" + product + "%2 %0 : " + large + "\n%5 = where %3 %4 %1 : " + large +
         "\nreturn %5\n",
     "%0 = input : " + large + "\n%1" + product + "%0 %0 : " + large + "\n%2 = square %1 : " + large + "\n%3" +
         product + "%2 %0 : " + large + "\n%4 = square %1 : " + large +
         "\n%5 = less %1 %4 : bool[512,512]\n%6 = where %5 %3 %1 : " + large + "\nreturn %6\n"},
    {"ATanhForItsMemory", kept_for_later("tanh", false), kept_for_later("tanh", true)},
    {"NotForMemoryThatAnotherReaderNeeds", shared_with_another(), ""},
    {"NotWhatIsDearerThanItsMemory", kept_for_later("lgamma", false), ""},
    {"NotANegationThatAProductReads",
     "%0 = input : " + large + "\n%1" + product + "%0 %0 : " + large + "\n%2 = negative %1 : " + large + "\n%3" +
         product + "%2 %0 : " + large + "\n%4 = multiply %3 %2 : " + large + "\nreturn %4\n",
     ""},
};
INSTANTIATE_TEST_SUITE_P(Graphs, Rederive, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradus::rederive_test
