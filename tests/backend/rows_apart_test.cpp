/// Of which loops members of a team have rows for themselves.
#include "gradus/backend/cpu/run/rows_apart.h"
#include <gtest/gtest.h>
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/graph/graph.h"

namespace gradus::rows_apart_test {
namespace {

struct RowsRow {
  const char* name;
  const char* body;  // %0 = f32[32,64] is handed on, %1 = f32[32,256], %2 = f32[64,256], %3 = f32[64,64] are not
  std::int64_t rows;
};

constexpr const char* product = "%4 = matmul{transpose_a=false; transpose_b=false} %0 %3 : f32[32,64]\n";

const RowsRow rows[] = {
    {"formulas", "%4 = tanh %0 : f32[32,64]\nreturn %4\n", 32},
    {"a_product_from_the_right",
     "%4 = matmul{transpose_a=false; transpose_b=false} %0 %3 : f32[32,64]\n%5 = tanh %4 : f32[32,64]\nreturn %5\n",
     32},
    {"columns",
     "%4 = matmul{transpose_a=false; transpose_b=false} %0 %2 : f32[32,256]\n%5 = add %4 %1 : f32[32,256]\n"
     "%6 = slice{begin=[0,64]; size=[32,64]} %5 : f32[32,64]\n%7 = slice{begin=[0,192]; size=[32,64]} %5 : f32[32,64]\n"
     "%8 = multiply %6 %7 : f32[32,64]\nreturn %8\n",
     32},
    {"side_by_side",
     "%4 = tanh %0 : f32[32,64]\n%5 = concat{axis=-1} %4 %0 : f32[32,128]\n"
     "%6 = slice{begin=[0,32]; size=[32,64]} %5 : f32[32,64]\nreturn %6\n",
     32},
    {"sums_of_rows",
     "%4 = sum{axis=-1} %0 : f32[32,1]\n%5 = broadcast{shape=[32,64]} %4 : f32[32,64]\n%6 = subtract %0 %5 : "
     "f32[32,64]\nreturn %6\n",
     32},
    {"another_shape",
     "%4 = reshape{shape=[16,128]} %0 : f32[16,128]\n%5 = tanh %4 : f32[16,128]\n%6 = reshape{shape=[32,64]} %5 : "
     "f32[32,64]\nreturn %6\n",
     32},
    {"what_is_not_handed_on_in_any_order",
     "%4 = reverse{dimensions=2} %1 : f32[32,256]\n%5 = tanh %4 : f32[32,256]\n"
     "%6 = slice{begin=[0,64]; size=[32,64]} %5 : f32[32,64]\n%7 = multiply %0 %6 : f32[32,64]\nreturn %7\n",
     32},
    {"not_a_product_from_the_left",
     "%4 = slice{begin=[0,0]; size=[32,32]} %3 : f32[32,32]\n"
     "%5 = matmul{transpose_a=false; transpose_b=false} %4 %0 : f32[32,64]\nreturn %5\n",
     0},
    {"not_a_product_with_its_own",
     "%4 = matmul{transpose_a=false; transpose_b=true} %0 %0 : f32[32,32]\n"
     "%5 = matmul{transpose_a=false; transpose_b=false} %4 %0 : f32[32,64]\nreturn %5\n",
     0},
    {"not_sums_over_rows",
     "%4 = sum{axis=-2} %0 : f32[1,64]\n%5 = broadcast{shape=[32,64]} %4 : f32[32,64]\n%6 = subtract %0 %5 : "
     "f32[32,64]\nreturn %6\n",
     0},
    {"not_another_order", "%4 = reverse{dimensions=2} %0 : f32[32,64]\n%5 = tanh %4 : f32[32,64]\nreturn %5\n", 0},
    {"not_a_row_for_all",
     "%4 = slice{begin=[3,0]; size=[1,64]} %0 : f32[1,64]\n%5 = broadcast{shape=[32,64]} %4 : f32[32,64]\n"
     "%6 = add %0 %5 : f32[32,64]\nreturn %6\n",
     0},
    {"not_rows_that_move_on",
     "%4 = concat{axis=-2} %0 %0 : f32[64,64]\n%5 = slice{begin=[1,0]; size=[32,64]} %4 : f32[32,64]\n"
     "%6 = tanh %5 : f32[32,64]\nreturn %6\n",
     0},
    {"not_transposed",
     "%4 = slice{begin=[0,0]; size=[32,32]} %0 : f32[32,32]\n%5 = transpose{order=[0,1]} %4 : f32[32,32]\n"
     "%6 = exp %5 : f32[32,32]\n%7 = concat{axis=-1} %6 %6 : f32[32,64]\nreturn %7\n",
     0},
};

class RowsApart : public testing::TestWithParam<RowsRow> {};

std::shared_ptr<const Binding> bound(const std::string& body, int threads, std::int64_t iterations,
                                     std::shared_ptr<const CpuProgram>& program) {
  program =
      cpu_backend::compile(parse_graph("%0 = input : f32[32,64]\n%1 = input : f32[32,256]\n%2 = input : f32[64,256]\n"
                                       "%3 = input : f32[64,64]\n" +
                                       body),
                           {.disable = {"epilogues"}});  // as bodies are
  return program->bound_within({}, threads, {0}, iterations);
}

TEST_P(RowsApart, AreFound) {
  std::shared_ptr<const CpuProgram> program;
  const auto binding = bound(GetParam().body, 2, 1000, program);
  EXPECT_EQ(binding->by_rows.rows, GetParam().rows);
  EXPECT_EQ(binding->by_rows.jobs.empty(), GetParam().rows == 0);
}
INSTANTIATE_TEST_SUITE_P(Rows, RowsApart, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(RowsApart, EveryMemberHasSome) {
  std::shared_ptr<const CpuProgram> program;
  const std::string body = std::string(product) + "return %4\n";
  for (int threads : {2, 3, 4}) {
    const auto binding = bound(body, threads, 1000, program);
    const RowJobs& all = binding->by_rows;
    ASSERT_EQ(all.first.size(), static_cast<std::size_t>(threads) + 1);
    EXPECT_EQ(all.first.front(), 0);
    EXPECT_EQ(all.first.back(), 32);
    for (std::size_t w = 1; w < all.first.size(); ++w) EXPECT_LT(all.first[w - 1], all.first[w]) << threads;
  }
  EXPECT_TRUE(bound(body, 5, 1000, program)->by_rows.jobs.empty()) << "too few rows for a product";
  EXPECT_TRUE(bound(body, 1, 1000, program)->by_rows.jobs.empty());
  EXPECT_TRUE(bound(body, 2, 0, program)->by_rows.jobs.empty());
  EXPECT_TRUE(program->bound_within({}, 2)->by_rows.jobs.empty()) << "no loop";
}

}  // namespace
}  // namespace gradus::rows_apart_test
