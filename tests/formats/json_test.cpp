/// JSON as others may write it: values come as they stand, depth has a bound, a key stands once, and mistakes have a
/// place.
#include "gradus/formats/json.h"
#include <gtest/gtest.h>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include "gradus/base/error.h"
#include "gradus/formats/csv.h"
#include "gradus/ops/constant.h"
#include "tests/errors.h"

namespace gradus::json_test {
namespace {

using Json = nlohmann::json;

std::string nested(const std::string& open, const std::string& inner, const std::string& close, int depth) {
  std::string out;
  for (int i = 0; i < depth; ++i) out += open;
  out += inner;
  for (int i = 0; i < depth; ++i) out += close;
  return out;
}

TEST(ParseJson, AgreesWithThePlainParser) {
  for (const char* written :
       {"null", "true", "[]", "{}", "-1", "18446744073709551615", "-9223372036854775808", "0.1", "-0.0", "1e308",
        "1E-5", "2.5e+3", "123456789012345678901234567890", "\"a\\u00e4\\n\\ud83d\\ude00\"",
        R"({"a": [1, {"b": [[], {}, "x"]}, 2.5], "c": {"d": null}, "": [false]})", " [ 1 , 2 ] "}) {
    EXPECT_EQ(parse_json(written, "s"), Json::parse(written)) << written;
    EXPECT_EQ(parse_json<nlohmann::ordered_json>(written, "s").dump(), nlohmann::ordered_json::parse(written).dump());
  }
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(R"({"z": 1, "a": 2})", "s").dump(), R"({"z":1,"a":2})");
}

TEST(ParseJson, NumbersAreTheNearest) {
  EXPECT_EQ(parse_json("0.30000000000000004", "s").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(parse_json("[1234567.5]", "s")[0].get<double>(), 1234567.5);
  EXPECT_EQ(parse_json("5e-324", "s").get<double>(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_json("1e-400", "s").get<double>(), 0);
  EXPECT_TRUE(std::signbit(parse_json("-1e-400", "s").get<double>()));
  EXPECT_EQ(parse_json("0." + std::string(400, '0') + "1", "s").get<double>(), 0);
  expect_says(error_of<DataError>([] { parse_json("1e400", "s"); }), "s: ");
  EXPECT_EQ(parse_json(parse_json("[0.1, -12345.678, 1e-7]", "s").dump(), "s").dump(), "[0.1,-12345.678,1e-07]");
}

/// Whatever the caller's rounding, numbers that are read are the nearest: of JSON, and of tables.
TEST(NumbersThatAreRead, DoNotDependOnTheCallersRounding) {
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(rounding);
    const double of_json = parse_json("[0.7]", "s")[0].get<double>();
    const float of_table = parse_csv("a,b\n0.7,1\n", "t", {.label = "b"}).features.to_vector<float>()[0];
    const std::string printed = text(constant(std::vector<float>{0.7f}));
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(of_json, 0.7);
    EXPECT_EQ(of_table, 0.7f);
    EXPECT_EQ(printed, text(constant(std::vector<float>{0.7f})));
  }
}

TEST(ParseJson, DepthHasABound) {
  for (const auto& [open, inner, close] :
       {std::tuple{"[", "", "]"}, {"{\"a\":", "1", "}"}, {"[{\"a\":", "[]", "}]"}, {"[1,{\"b\":2,\"a\":", "0", "}]"}}) {
    const int levels = std::string_view(open).starts_with("[") && std::string_view(open).size() > 1 ? 2 : 1;
    const int at_bound = (max_json_depth - (std::string_view(inner) == "[]")) / levels;
    const Json deepest = parse_json(nested(open, inner, close, at_bound), "s");
    EXPECT_EQ(Json(deepest).dump(), deepest.dump());  // copying and writing call themselves for each level
    for (const int depth : {at_bound + 1, 20'000, 1'000'000})
      for (const std::string& end : {std::string(close), std::string()})  // also where it breaks off
        EXPECT_EQ(error_of<DataError>([&] { parse_json(nested(open, inner, end, depth), "s"); }),
                  "s: values are nested more than 200 deep");
  }
  EXPECT_TRUE(json_if_any(std::string(1'000'000, '[')).is_null());
}

TEST(ParseJson, KeysStandOnce) {
  EXPECT_EQ(error_of<DataError>([] { parse_json(R"({"a": 1, "b": {"a": 2, "a": 3}})", "file"); }),
            "file: the key `a` stands twice in one object");
  EXPECT_EQ(error_of<DataError>([] { parse_json(R"({"a": 1, "\u0061": 2})", "file"); }),
            "file: the key `a` stands twice in one object");
  EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": 1}])", "file").size(), 2u);
}

TEST(ParseJson, MistakesHaveAPlace) {
  for (const auto& [written, place] : {std::pair{"", "byte 0"},
                                       {"[1,]", "byte 3"},
                                       {"{\"a\" 1}", "byte 5"},
                                       {"[1] x", "byte 4"},
                                       {"\"\xff\"", "byte 1"},
                                       {"nul", "byte "},
                                       {"[01]", "byte "}})
    expect_says(error_of<DataError>([&] { parse_json(written, "file"); }), std::string("file: ") + place);
  EXPECT_TRUE(json_if_any("{\"epoch\": 1, \"lo").is_null());
}

}  // namespace
}  // namespace gradus::json_test
