/// Sizes that vary, and C++ that reads them: whatever it does with a size, a call gives what the C++ gives for it.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus::sizes_test {
namespace {

using Program = std::function<Tensor(Tensor)>;

Tensor rows_of_size(std::int64_t n) { return random::normal({n, 3}, {.seed = static_cast<std::uint64_t>(n + 1)}); }

void expect_right(const Program& f, const Function<Program>& traced, std::int64_t n) {
  const Tensor x = rows_of_size(n);
  EXPECT_TRUE(bitwise_equal(traced(x), f(x))) << n << " rows\n" << text(traced.explain());
}

bool says(const Explanation& e, const std::string& wanted) {
  return std::ranges::any_of(e.retraces, [&](const Retrace& r) { return r.reason.find(wanted) != std::string::npos; });
}

struct Reader {
  const char* name;
  Program f;
};

Tensor loop_over_rows(const Tensor& x) {
  Tensor sum = zeros({3});
  for (int i = 0; i < x.shape()[0]; ++i) sum = sum * 0.5 + squeeze(x.rows(i, i + 1), {0});
  return sum;
}

const Reader readers[] = {
    {"a_loop_over_rows", loop_over_rows},
    {"a_loop_that_counts_unsigned",
     [](const Tensor& x) {
       Tensor sum = zeros({3});
       for (std::size_t i = 0; i < static_cast<std::size_t>(x.shape()[0]); ++i)
         sum = sum * 0.5 + squeeze(x.rows(0, 1), {0});
       return sum;
     }},
    {"a_size_as_a_number", [](const Tensor& x) { return reduce_sum(x) * (1.0 / static_cast<double>(x.shape()[0])); }},
    {"a_branch_at_ten", [](const Tensor& x) { return x.shape()[0] > 10 ? x * 2 : x * 3; }},
    {"a_branch_at_one", [](const Tensor& x) { return x.shape()[0] == 1 ? x - 1 : exp(x); }},
    {"a_vector_of_that_length",
     [](const Tensor& x) {
       std::vector<float> weights(static_cast<std::size_t>(x.shape()[0]));
       for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
       return from_values(weights, {x.shape()[0], 1}) * x;
     }},
    {"in_a_nested_function",
     [](const Tensor& x) { return function([](Tensor y) { return loop_over_rows(y); })(tanh(x)); }},
    {"in_the_body_of_a_scan",
     [](const Tensor& x) {
       const double n = static_cast<double>(x.shape()[0]);
       return scan([n](const Tensor& sum, const Tensor& row) { return std::pair{sum * n + row, sum}; }, zeros({3}), x)
           .second;
     }},
    {"under_a_tape",
     [](const Tensor& x) {
       GradientTape tape;
       tape.watch(x);
       return tape.gradient(reduce_sum(square(loop_over_rows(x))), x);
     }},
    {"behind_a_guard",
     [](const Tensor& x) {
       if (bool(reduce_sum(x) > 0)) return loop_over_rows(x);
       return x.shape()[0] > 10 ? reduce_max(x) + ones({3}) : reduce_min(x) + ones({3});
     }},
    {"its_negative", [](const Tensor& x) { return x.shape()[0] < 0 ? x * 100 : x; }},
};

class ReadSizes : public testing::TestWithParam<Reader> {};
INSTANTIATE_TEST_SUITE_P(All, ReadSizes, testing::ValuesIn(readers), [](const auto& i) { return i.param.name; });

TEST_P(ReadSizes, GiveWhatTheirCppGives) {
  const Function<Program> traced = function(GetParam().f);
  for (const std::int64_t n : {4, 7, 20, 7, 1, 12, 4, 20}) expect_right(GetParam().f, traced, n);
  EXPECT_TRUE(says(traced.explain(), "sizes are fixed in it")) << text(traced.explain());
}

TEST_P(ReadSizes, AreRefusedWhereAnySizeIsDeclared) {
  const Function<Program> traced =
      function(GetParam().f, {.name = "reader", .input_signature = {{f32, {any_size, 3}}}});
  int refused = 0;
  for (const std::int64_t n : {4, 20, 1, 7}) try {
      expect_right(GetParam().f, traced, n);
    } catch (const InvalidArgument& error) {
      ++refused;
      EXPECT_NE(std::string(error.what())
                    .find("function reader: its input signature says any_size for argument 0, "
                          "dimension 0, but"),
                std::string::npos)
          << error.what();
    }
  // Where a size is 0 or 1 library functions may choose other ops as well, so that call gets a variant of its own.
  EXPECT_EQ(refused > 0, GetParam().name != std::string("a_branch_at_one"));
}

TEST(Sizes, AStructureThatDependsOnASizeIsAnotherProgram) {
  struct Halves {
    std::vector<Tensor> small, large;
  };
  const auto sorted = function([](const Tensor& x) {
    Halves halves;
    (x.shape()[0] > 8 ? halves.large : halves.small).push_back(x * 2);
    return halves;
  });
  for (const int n : {3, 20, 4, 30, 5}) {
    const Halves halves = sorted(rows_of_size(n));
    EXPECT_EQ(halves.large.size(), n > 8 ? 1u : 0u) << n;
    EXPECT_EQ(halves.small.size(), n > 8 ? 0u : 1u) << n;
  }
}

TEST(Sizes, ASizeThatHasNoResultInTheOpenProgramHasAVariantOfItsOwn) {
  const auto shortened = function([](const Tensor& x) {
    const std::int64_t n = x.shape()[0];
    if (n == 0) return x;
    return concat({x, iota({n - 1}, f32)}, 0);
  });
  for (const int n : {4, 5, 0, 7, 1, 0}) EXPECT_EQ(shortened(ones({n})).shape()[0], n == 0 ? 0 : 2 * n - 1) << n;
}

TEST(Sizes, MayEachHaveAVariantOfTheirOwn) {
  std::vector<std::int64_t> met;
  const auto traced = function(
      [&](Tensor x) {
        met.push_back(x.shape()[0]);
        return x * x.shape()[0];
      },
      {.open_sizes = false});
  for (const int n : {3, 4, 3, 5, 4}) EXPECT_TRUE(bitwise_equal(traced(rows_of_size(n)), rows_of_size(n) * n));
  EXPECT_EQ(met, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(traced.explain().variants, 3);
  EXPECT_THROW(function([](Tensor x) { return x; }, {.input_signature = {{f32, {any_size}}}, .open_sizes = false}),
               InvalidArgument);
}

TEST(Sizes, OnlyTheSizeThatIsReadIsFixed) {
  const auto f = [](const Tensor& x, const Tensor& y) { return reduce_sum(loop_over_rows(x)) + reduce_mean(y); };
  const auto traced = function([&](Tensor x, Tensor y) { return f(x, y); });
  for (const auto& [n, m] : {std::pair{4, 8}, {5, 9}, {5, 10}, {5, 11}, {6, 12}, {6, 13}}) {
    const Tensor x = rows_of_size(n), y = rows_of_size(m);
    EXPECT_TRUE(bitwise_equal(traced(x, y), f(x, y))) << n << " " << m;
  }
  EXPECT_EQ(traced.explain().variants, 3) << text(traced.explain());
  EXPECT_TRUE(says(traced.explain(),
                   "(argument 0, dimension 0: this size is fixed in it, since the C++ of the function "
                   "reads it)"));
}

TEST(Sizes, WhereTheCppIsTheSameProgramAVariantIsShared) {
  int runs = 0;
  const auto traced = function([&](Tensor x) {
    ++runs;
    return x.shape()[0] > 10 ? x * 2 : x * 3;
  });
  for (const int n : {4, 7, 5, 9, 7, 5}) traced(rows_of_size(n));
  EXPECT_EQ(traced.explain().variants, 2);
  EXPECT_EQ(runs, 1 + 2 + 1 + 1) << "each size is looked at once";
  traced(rows_of_size(11));
  EXPECT_EQ(traced.explain().variants, 3);
}

TEST(Sizes, AnExceptionOfTheUserIsTheUsers) {
  const auto traced = function([](Tensor x) {
    if (x.shape()[0] == 3) throw std::runtime_error("not three");
    return x * 2;
  });
  for (const int n : {1, 2, 4}) traced(rows_of_size(n));
  EXPECT_THROW(traced(rows_of_size(3)), std::runtime_error);
  EXPECT_EQ(traced(rows_of_size(5)).shape()[0], 5);
}

TEST(Sizes, AnExceptionOfTheUserInTheRunWithOpenSizesIsNotSwallowed) {
  struct Interrupted : std::exception {};
  bool is_interrupted = false;
  const auto traced = function([&](Tensor x) {
    if (is_interrupted && x.shape()[0] < 0) throw Interrupted();
    return x * 2;
  });
  traced(rows_of_size(2));
  is_interrupted = true;
  EXPECT_THROW(traced(rows_of_size(3)), Interrupted);
  is_interrupted = false;
  EXPECT_EQ(traced(rows_of_size(4)).shape()[0], 4);
}

TEST(Sizes, OtherStateOfTheCppStaysFrozen) {
  Tensor captured = constant(2.0f);
  const auto traced = function([&](Tensor x) { return reduce_sum(x * captured); });
  for (const int n : {2, 3}) EXPECT_EQ(traced(ones({n})).item(), 2 * n);
  captured = constant(5.0f);
  EXPECT_EQ(traced(ones({4})).item(), 8);
  EXPECT_EQ(traced.explain().variants, 2);
}

TEST(Sizes, FrozenStateThatSendsACallAnotherWayIsNoEndlessSearch) {
  bool greater = true;
  const auto traced = function([&](Tensor x) {
    const Tensor predicate = greater ? reduce_sum(x) > 0 : reduce_sum(x) < 0;
    return bool(predicate) ? x * 2 : x * 3;
  });
  for (const int n : {2, 3}) EXPECT_EQ(traced(ones({n})).to_vector<float>()[0], 2);
  greater = false;
  EXPECT_NO_THROW(traced(ones({4})));
  EXPECT_NO_THROW(traced(-ones({5})));
}

struct Library {
  const char* name;
  Program f;
};

Tensor trained(const Tensor& x, const std::function<Tensor(const Tensor&)>& loss) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(loss(x), x);
}

const Library library[] = {
    {"mean_and_variance",
     [](const Tensor& x) { return x - reduce_mean(x, {.axis = {0}}) + reduce_std(x, {.axis = {0}}); }},
    {"gradient_of_a_mean", [](const Tensor& x) { return trained(x, [](auto& y) { return reduce_mean(square(y)); }); }},
    {"matmul", [](const Tensor& x) { return matmul(matmul(x, transpose(x)), tanh(x)); }},
    {"gradient_of_matmul",
     [](const Tensor& x) { return trained(x, [](auto& y) { return reduce_sum(square(matmul(transpose(y), y))); }); }},
    {"reshape_and_broadcast",
     [](const Tensor& x) {
       const std::int64_t n = x.shape()[0];
       return reshape(x, {-1}) + reshape(transpose(reshape(x, {3, n})), {-1}) +
              reshape(broadcast_to(reduce_sum(x, {.axis = {1}, .keepdims = true}), x.shape()), {-1});
     }},
    {"pairs", [](const Tensor& x) { return expand_dims(x, 0) - expand_dims(x, 1); }},
    {"softmax", [](const Tensor& x) { return softmax(transpose(x)); }},
    {"random", [](const Tensor& x) { return x * random::uniform(x.shape(), {.seed = 3}); }},
    {"jacobian", [](const Tensor& x) { return jacobian([](const Tensor& y) { return tanh(y); }, x); }},
    {"batch_jacobian",
     [](const Tensor& x) { return batch_jacobian([](const Tensor& y) { return tanh(matmul(y, ones({3, 2}))); }, x); }},
    {"vectorized_map",
     [](const Tensor& x) { return vectorized_map([](const Tensor& row) { return row / reduce_sum(exp(row)); }, x); }},
    {"scan",
     [](const Tensor& x) {
       return trained(x, [](auto& y) {
         return reduce_sum(
             scan([](const Tensor& s, const Tensor& row) { return std::pair{tanh(s + row), s}; }, zeros({3}), y)
                 .second);
       });
     }},
    {"nothing_but_the_size", [](const Tensor& x) { return ones({3}) * extent(x.shape()[0], f32); }},
    {"a_count_of_ones", [](const Tensor& x) { return ones({3}) + reduce_sum(ones_like(x)); }},
    {"a_place_by_size", [](const Tensor& x) { return slice_within(range(40) * 2, 0, x.shape()[0], 2); }},
    {"rows_by_size",
     [](const Tensor& x) {
       return vectorized_map([n = x.shape()[0]](const Tensor& row) { return tanh(row) * extent(n, f32); },
                             range(12, f32));
     }},
    {"a_gradient_by_size",
     [](const Tensor& x) {
       const Tensor n = extent(x.shape()[0], f32);
       return trained(range(5, f32), [&](auto& w) { return reduce_sum(square(w * n)); });
     }},
    {"a_second_gradient_by_size",
     [](const Tensor& x) {
       const Tensor n = extent(x.shape()[0], f32);
       return trained(range(5, f32), [&](auto& w) {
         return reduce_sum(square(trained(w, [&](auto& v) { return reduce_sum(v * v * v * n); })));
       });
     }},
    {"iterations_by_size",
     [](const Tensor& x) {
       return scan([](const Tensor& s, const Tensor& i) { return std::pair{s * 0.5F + i, s}; }, zeros({2}),
                   iota({x.shape()[0]}, f32))
           .first;
     }},
    {"a_branch_by_size",
     [](const Tensor& x) {
       const Tensor n = extent(x.shape()[0], f32);
       return cond(n > 3.0F, [&] { return ones({2}) * n; }, [&] { return zeros({2}) - n; });
     }},
};

class OpsKnowSizes : public testing::TestWithParam<Library> {};
INSTANTIATE_TEST_SUITE_P(All, OpsKnowSizes, testing::ValuesIn(library), [](const auto& i) { return i.param.name; });

TEST_P(OpsKnowSizes, SoOneVariantServesAll) {
  const Function<Program> traced = function(GetParam().f, {.input_signature = {{f32, {any_size, 3}}}});
  for (const std::int64_t n : {4, 7, 1, 20, 0, 3, 2}) {
    try {
      for (int call = 0; call < 2; ++call) expect_right(GetParam().f, traced, n);  // interpreted, then compiled
    } catch (const Error& error) { ADD_FAILURE() << n << " rows: " << error.what(); }
  }
  EXPECT_EQ(traced.explain().variants, 1) << text(traced.explain());
}

/// A size as a tensor that decides about the way of C++ is a size that C++ reads.
TEST(Sizes, ABranchOfCppOnASizeAsATensor) {
  const Program f = [](const Tensor& x) {
    if (bool(extent(x.shape()[0], i64) > 4)) return x * 2;
    return x - 1;
  };
  const Function<Program> traced = function(f), open = function(f, {.input_signature = {{f32, {any_size, 3}}}});
  for (const std::int64_t n : {4, 7, 1, 20, 5, 3}) expect_right(f, traced, n);
  EXPECT_THROW(open(rows_of_size(4)), InvalidArgument);
}

}  // namespace
}  // namespace gradus::sizes_test
