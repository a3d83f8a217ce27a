/// Ops that give indices or counts: each is right with every integer type that holds its results, and otherwise an
/// error names the type. GRADUS_LARGE=1 runs some on more than 2^31 elements, which takes 10 GiB of memory.
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::index_types_test {
namespace {

/// An op on n elements with an index, or a count, near n.
struct Numbering {
  const char* name;                                // of the function
  std::function<Tensor(std::int64_t, DType)> run;  // with n elements, and the type of its indices
  std::int64_t off = 0;                            // the largest number is n - 1 + off
};

/// [n]: zeros, and a one at the end.
Tensor one_at_end(std::int64_t n, DType t) { return concat({zeros({n - 1}, t), ones({1}, t)}, 0); }

const Numbering numberings[] = {
    {"argmax", [](std::int64_t n, DType t) { return argmax(one_at_end(n, u8), {.output_type = t}); }},
    {"argmin", [](std::int64_t n, DType t) { return argmin(1 - one_at_end(n, u8), {.output_type = t}); }},
    {"argmax of the last",
     [](std::int64_t n, DType t) { return argmax(zeros({n}, u8), {.select_last_index = true, .output_type = t}); }},
    {"searchsorted", [](std::int64_t n, DType t) { return searchsorted(zeros({n}, u8), ones({1}, u8), Side::left, t); },
     1},
    {"searchsorted of NaN",
     [](std::int64_t n, DType t) {
       return searchsorted(zeros({n}, f16), full({1}, std::nan(""), f16), Side::right, t);
     },
     1},
    {"bincount", [](std::int64_t n, DType t) { return bincount(zeros({n}, u8), 0, t); }, 1},
    {"histogram_fixed_width",
     [](std::int64_t n, DType t) { return histogram_fixed_width(zeros({n}, f16), 0, 1, 1, t); }, 1},
    {"size", [](std::int64_t n, DType t) { return size(zeros({n}, u8), t); }, 1},
    {"shape", [](std::int64_t n, DType t) { return shape(zeros({n}, u8), t); }, 1},
    {"unique", [](std::int64_t n, DType t) { return reduce_max(unique(zeros({n}, u8), {.out_idx = t}).count); }, 1},
};

std::int64_t last_of(const Tensor& x) { return cast(x, i64).to_vector<std::int64_t>().back(); }

TEST(IndexTypes, HoldWhatTheyNumberOrAreRefused) {
  for (const Numbering& op : numberings) {
    for (const DType t : {i8, u8, i16, u16, i32, u32, i64, u64})
      for (const std::int64_t n : {3, 100, 128, 129, 256, 257, 1000, 32768, 32770, 65536, 65540}) {
        const std::int64_t largest = n - 1 + op.off;
        const bool held = size_of(t) >= 4 || largest < std::int64_t{1} << (8 * size_of(t) - (is_signed(t) ? 1 : 0));
        SCOPED_TRACE(text(op.name, " of ", n, " by ", t));
        if (held) {
          const Tensor got = op.run(n, t);
          EXPECT_EQ(got.dtype(), t);
          EXPECT_EQ(last_of(got), largest);
          continue;
        }
        try {
          (void)last_of(op.run(n, t));
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find(name_of(t)), std::string::npos) << error.what();
        }
      }
    const std::string_view name = op.name;
    if (name == "size" || name == "shape") continue;  // these take floats
    EXPECT_THROW((void)op.run(3, f32), Error) << name;
  }
}

/// Every function of the ops' headers that takes a type of indices or counts has a row above, or is listed here.
TEST(IndexTypes, NamesEveryOpThatHasOne) {
  const std::regex numbered(R"((\w+)\([^;]*DType (?:out_type|out_idx|dtype) = i32\))");
  for (const char* header : {"sort.h", "select.h", "layout.h", "reduce.h"}) {
    std::ifstream in(std::filesystem::path(GRADUS_OPS_FOLDER) / header);
    std::stringstream all;
    all << in.rdbuf();
    const std::string source = all.str();
    ASSERT_FALSE(source.empty()) << header;
    for (std::sregex_iterator it(source.begin(), source.end(), numbered), end; it != end; ++it)
      EXPECT_TRUE(std::ranges::any_of(numberings, [&](const Numbering& n) { return n.name == (*it)[1].str(); }))
          << (*it)[1] << " of " << header;
  }
}

// ---------------------------------------------------------------- open extents

/// The n^2 zeros of a vector [n], which are never made.
Tensor square_of(const Tensor& x) {
  const std::int64_t n = x.shape()[0];
  return reshape(broadcast_to(reshape(x, {n, 1}), {n, n}), {any_size});
}

/// A program for all sizes refuses those that its indices cannot number, before it computes.
TEST(IndexTypes, OfOpenExtentsAreCheckedAtTheCall) {
  const std::vector<std::pair<const char*, Tensor (*)(const Tensor&, DType)>> ops{
      {"argmax", [](const Tensor& x, DType t) { return argmax(square_of(x), {.output_type = t}); }},
      {"argmin",
       [](const Tensor& x, DType t) { return argmin(square_of(x), {.select_last_index = true, .output_type = t}); }},
      {"searchsorted",
       [](const Tensor& x, DType t) { return searchsorted(square_of(x), reshape(x[0], {1}), Side::left, t); }},
      {"size", [](const Tensor& x, DType t) { return size(square_of(x), t); }},
      {"shape", [](const Tensor& x, DType t) { return shape(square_of(x), t); }}};
  for (const auto& [name, op] : ops)
    for (const DType t : {i16, i32}) {
      auto traced =
          function([&, op = op](const Tensor& x) { return op(x, t); }, {.input_signature = {Spec{f32, {any_size}}}});
      EXPECT_EQ(traced(zeros({100})).dtype(), t) << name;
      const std::int64_t most = t == i16 ? 200 : 50'000;
      const std::string said = error_of<OutOfRange>([&] { (void)last_of(traced(zeros({most}))); });
      for (const std::string_view word : {std::string_view(name), name_of(t), std::string_view("i64")})
        EXPECT_NE(said.find(word), std::string::npos) << said;
    }
}

// ---------------------------------------------------------------- beyond 2^31

constexpr std::int64_t many = (std::int64_t{1} << 31) + 1000;

bool has_room() {
  const char* set = std::getenv("GRADUS_LARGE");
  return set && std::string_view(set) == "1";
}

TEST(IndexTypes, NumberMoreThan32Bits) {
  if (!has_room()) GTEST_SKIP() << "GRADUS_LARGE=1 runs it";
  for (const Numbering& op : numberings) {
    if (std::string_view(op.name) == "unique" || std::string_view(op.name) == "histogram_fixed_width" ||
        std::string_view(op.name) == "searchsorted of NaN")
      continue;  // their values take more than a byte for each element
    EXPECT_EQ(last_of(op.run(many, i64)), many - 1 + op.off) << op.name;
    EXPECT_THROW((void)last_of(op.run(many, i32)), Error) << op.name;
  }
  const auto compiled = function([](const Tensor& x) { return argmax(x, {.output_type = i64}); });
  EXPECT_EQ(last_of(compiled(one_at_end(many, u8))), many - 1);
  auto open = function([](const Tensor& x) { return argmax(square_of(x), {.output_type = i64}); },
                       {.input_signature = {Spec{f32, {any_size}}}});
  for (const std::int64_t n : {5, 50'000}) EXPECT_EQ(last_of(open(one_at_end(n, f32))), n * (n - 1));
}

/// If extents decide, nothing is computed before the error: the arrays here are never made.
TEST(IndexTypes, TooManyElementsAreRefusedByTheirExtent) {
  const Tensor x = zeros({many}, u8);
  for (const Numbering& op : numberings) {
    const std::string_view name = op.name;
    if (name == "bincount" || name.starts_with("argm") || name == "unique") continue;
    EXPECT_THROW((void)op.run(many, i32), Error) << name;
  }
  EXPECT_THROW((void)argmax(x), OutOfRange);
  EXPECT_THROW((void)argmin(x), OutOfRange);
  EXPECT_THROW((void)argmax(x, {.output_type = i32}), OutOfRange);
  EXPECT_THROW((void)argsort(x), Error);
  EXPECT_THROW((void)sort(x), Error);
  EXPECT_THROW((void)top_k(x, 1), Error);
  EXPECT_THROW((void)confusion_matrix(x, x, 2), OutOfRange);
  EXPECT_THROW((void)unique(x), OutOfRange);
}

}  // namespace
}  // namespace gradus::index_types_test
