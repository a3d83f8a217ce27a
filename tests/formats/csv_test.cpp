/// Tables: what cells become, and what each mistake says.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>
#include "gradus/base/error.h"
#include "gradus/formats/csv.h"
#include "tests/errors.h"

namespace gradus::csv_test {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

CsvTable parse(std::string_view text, const CsvOptions& options) { return parse_csv(text, "t.csv", options); }

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "nothing";
}

TEST(Csv, FeaturesAndLabel) {
  const CsvTable table = parse("width,height,kind\n1.5,2,0\n3,-4.5e1,1\n", {.label = "kind"});
  EXPECT_EQ(table.features.spec(), (Spec{f32, {2, 2}}));
  EXPECT_EQ(table.features.to_vector<float>(), (Floats{1.5, 2, 3, -45}));
  EXPECT_EQ(table.label.to_vector<std::int32_t>(), (Integers{0, 1}));
  EXPECT_EQ(table.columns, (std::vector<std::string>{"width", "height"}));
}

TEST(Csv, LabelsThatAreNoIntegersAreFloats) {
  EXPECT_EQ(parse("x,y\n1,0\n2,0.5\n", {.label = "y"}).label.to_vector<float>(), (Floats{0, 0.5}));
  EXPECT_EQ(parse("x,y\n", {.label = "y"}).features.shape(), (Shape{0, 1}));
}

TEST(Csv, EndsQuotesAndSpaces) {
  const Floats expected{1, 2, 3, 4};
  for (const std::string_view text :
       {"a,b,c\n1,2,0\n3,4,0\n", "a,b,c\r\n1,2,0\r\n3,4,0", "\xef\xbb\xbf\"a\",b,c\n\n 1 ,\t2,0\n\n+3,\"4\",0\n\n",
        "\"a\",\"b\",\"c\"\r\n\"1\",\"2\",\"0\"\r\n\"3\",\"4\",\"0\"\r\n"})
    EXPECT_EQ(parse(text, {.label = "c"}).features.to_vector<float>(), expected) << text;
  EXPECT_EQ(parse("1;2;0\n3;4;0", {.label = "2", .header = false, .separator = ';'}).features.to_vector<float>(),
            expected);
}

TEST(Csv, NumbersAreRoundedOnce) {
  const CsvTable table = parse("x,y\n0.1,0\n16777217,0\n1e-45,0\n1e-60,0\n3.4028235e38,0\ninf,0\n", {.label = "y"});
  EXPECT_EQ(table.features.to_vector<float>(), (Floats{0.1f, 16777216.0f, 1e-45f, 0, 3.4028235e38f, INFINITY}));
}

TEST(Csv, CategoriesAreNumberedByTheirOrder) {
  const std::string_view text =
      "colour,n,kind\nred,1,dog\n\"blue, \"\"dark\"\"\",2,cat\nred,3,cat\n\"two\nlines\",4,eel\n";
  const CsvTable table = parse(text, {.label = "kind", .categories = {{"colour", {}}, {"kind", {}}}});
  EXPECT_EQ(table.features.to_vector<float>(), (Floats{1, 1, 0, 2, 1, 3, 2, 4}));
  EXPECT_EQ(table.label.to_vector<std::int32_t>(), (Integers{1, 0, 0, 2}));
  EXPECT_EQ(table.categories.at("kind"), (std::vector<std::string>{"cat", "dog", "eel"}));
  EXPECT_EQ(table.categories.at("colour"), (std::vector<std::string>{"blue, \"dark\"", "red", "two\nlines"}));
  const CsvTable given = parse("kind,x\ndog,1\ncat,2\n", {.label = "kind", .categories = {{"kind", {"dog", "cat"}}}});
  EXPECT_EQ(given.label.to_vector<std::int32_t>(), (Integers{0, 1}));
}

TEST(Csv, AMissingWordIsNoWord) {
  const CsvTable table = parse("b,n,y\nred,1,0\nNA,NA,1\nblue,3,0\n",
                               {.label = "y", .missing_value = 0, .missing_category = -1, .categories = {{"b", {}}}});
  EXPECT_EQ(table.features.to_vector<float>(), (std::vector<float>{1, 1, -1, 0, 0, 3}));
}

TEST(Csv, MissingValues) {
  const std::string_view text = "a,b,y\n,red,0\nNA,n/a,1\n3,blue,1\n";
  const CsvTable table = parse(text, {.label = "y", .missing_value = -7, .categories = {{"b", {}}}});
  EXPECT_EQ(table.features.to_vector<float>(), (Floats{-7, 1, -7, -7, 3, 0}));
  const auto values = parse("a,y\nnan,0\n?,0\n", {.label = "y", .missing_value = NAN}).features.to_vector<float>();
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
}

TEST(Csv, ColumnsThatAreSaid) {
  const std::string text = "a,note,b,kind\n1,north,2,x\n3,,4,y\n";
  const CsvTable table = parse(text, {.label = "kind", .categories = {{"kind", {}}}, .columns = {"b", "a"}});
  EXPECT_EQ(table.columns, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(table.features.to_vector<float>(), (Floats{2, 1, 4, 3}));
  EXPECT_EQ(table.label.to_vector<std::int32_t>(), (Integers{0, 1}));
  const CsvTable unlabelled = parse(text, {.columns = {"a"}});
  EXPECT_EQ(unlabelled.features.to_vector<float>(), (Floats{1, 3}));
  EXPECT_FALSE(unlabelled.label.defined());
  EXPECT_EQ(parse("a,b\n", {.columns = {"a"}}).features.shape(), (Shape{0, 1}));
  const auto message = [&](const CsvOptions& options) { return message_of([&] { parse(text, options); }); };
  EXPECT_NE(message({.columns = {"c"}}).find("no column `c`, which `columns` names"), std::string::npos);
  EXPECT_NE(message({.columns = {"a", "a"}}).find("names `a` twice"), std::string::npos);
  EXPECT_NE(message({.label = "a", .columns = {"a"}}).find(".columns names the label"), std::string::npos);
  EXPECT_NE(message({.columns = {"note"}}).find("expected a number"), std::string::npos);
}

TEST(Csv, Mistakes) {
  struct Mistake {
    std::string_view text;
    CsvOptions options;
    std::string message;
  };
  const std::vector<Mistake> mistakes{
      {"width,height,kind\n1.5,wide,0\n",
       {.label = "kind"},
       "from_csv: t.csv:2: column `height`: expected a number, found \"wide\"; if the column is of words, name "
       "it in `categories`"},
      {"a,y\n1,0\n\n2,x\n",
       {.label = "y"},
       "from_csv: t.csv:4: column `y`: expected a number, found \"x\"; if the column is of words, name it in "
       "`categories`"},
      {"a,y\n,0\n",
       {.label = "y"},
       "from_csv: t.csv:2: column `a`: expected a number, found \"\"; .missing_value says what stands for a missing "
       "one"},
      {"a,y\n1,\n", {.label = "y", .missing_value = 0}, "from_csv: t.csv:2: column `y`: the label is missing: \"\""},
      {"a,y\n1e39,0\n",
       {.label = "y"},
       "from_csv: t.csv:2: column `a`: expected a number of at most 3.4e38, which f32 holds, found \"1e39\""},
      {"a,y\n1 2,0\n",
       {.label = "y"},
       "from_csv: t.csv:2: column `a`: expected a number, found \"1 2\"; if the column is of words, name it "
       "in `categories`"},
      {"a,y\n1,0\n1,2,3\n", {.label = "y"}, "from_csv: t.csv:3: expected 2 columns, found 3"},
      {"a,y\n\"1,0\n2,3\n", {.label = "y"}, "from_csv: t.csv:2: byte 4: this quote is not closed"},
      {"a,y\n\"1\"2,0\n",
       {.label = "y"},
       "from_csv: t.csv:2: byte 7: a cell goes on behind its closing quote; a quote within a cell is written twice"},
      {"", {.label = "y"}, "from_csv: t.csv: the file is empty; expected a header"},
      {"a,kind\n1,2\n",
       {.label = "kidn"},
       "from_csv: t.csv has no column `kidn`, which `label` names; did you mean `kind`? The columns are `a`, "
       "`kind`"},
      {"a,y\n1,cow\n",
       {.label = "y", .categories = {{"y", {"cat", "dog"}}}},
       "from_csv: t.csv:2: column `y`: found \"cow\", expected one of its 2 categories; did you mean `cat`?"},
      {"y,y\n1,2\n", {.label = "y"}, "from_csv: t.csv:1: 2 columns are called `y`"},
      {std::string_view("\xff\xfe"
                        "a\0,\0y\0\n\0",
                        10),
       {.label = "y"},
       "from_csv: t.csv:1: this is no text, or text in UTF-16; expected UTF-8"},
  };
  for (const Mistake& mistake : mistakes)
    EXPECT_EQ(message_of([&] { parse(mistake.text, mistake.options); }), mistake.message);
  EXPECT_THROW(load_csv("/none/such.csv", {.label = "y"}), Unavailable);
}

TEST(Csv, LabelsTakeTheIntegersThatTheyNeed) {
  const auto label_of = [](const std::string& cells) { return parse("x,y\n" + cells, {.label = "y"}).label; };
  EXPECT_EQ(label_of("1,2147483647\n1,-2147483648\n").dtype(), i32);
  const Tensor wide = label_of("1,2147483648\n1,-9223372036854775808\n1,9223372036854775807\n1,16777217\n");
  EXPECT_EQ(wide.dtype(), i64);
  EXPECT_EQ(wide.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{2147483648, std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max(), 16777217}));
  expect_says(error_of<DataError>([&] { label_of("1,5\n1,9223372036854775808\n1,3\n"); }), "t.csv:3: column `y`");
  expect_says(error_of<DataError>([&] { label_of("1,-9223372036854775809\n"); }), "i64");
  EXPECT_EQ(label_of("1,9223372036854775808\n1,0.5\n").dtype(), f32);  // numbers to predict
  EXPECT_EQ(label_of("1,2147483648.0\n").dtype(), f32);
}

}  // namespace
}  // namespace gradus::csv_test
