/// How deep a configuration may nest: found before the parser, which calls itself for each level, sees it.
#include "apps/gradus/toml.h"
#include <gtest/gtest.h>
#include <functional>
#include "apps/gradus/config.h"
#include "apps/gradus/config_reader.h"
#include "tests/errors.h"

namespace gradus::command::toml_test {
namespace {

std::string repeated(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}
std::string dotted(int parts) { return "a" + repeated(".a", parts - 1); }

std::string said_of(const std::string& written) {
  return error_of<ConfigError>([&] { parse_toml(written, "deep.toml"); });
}

/// Each way to nest, by the number of levels of its value.
const std::vector<std::pair<const char*, std::function<std::string(int)>>> ways{
    {"a dotted key", [](int n) { return dotted(n) + " = 1\n"; }},
    {"quoted parts", [](int n) { return "\"a\"" + repeated(" . 'b'", n - 1) + " = 1\n"; }},
    {"a header", [](int n) { return "[" + dotted(n - 1) + "]\na = 1\n"; }},
    {"a header of an array", [](int n) { return "[[" + dotted(n - 2) + "]]\na = 1\n"; }},
    {"a key below a header", [](int n) { return "[" + dotted(n / 2) + "]\n" + dotted(n - n / 2) + " = 1\n"; }},
    {"arrays", [](int n) { return "a = " + repeated("[", n - 1) + "1" + repeated("]", n - 1) + "\n"; }},
    {"arrays of lines", [](int n) { return "a = " + repeated("[\n", n - 1) + "1" + repeated("\n]", n - 1) + "\n"; }},
    {"tables", [](int n) { return repeated("a = {", n - 1) + "a = 1" + repeated("}", n - 1) + "\n"; }},
    {"arrays behind elements",
     [](int n) { return "a = " + repeated("[1.5, ", n - 1) + "1" + repeated("]", n - 1) + "\n"; }},
    {"dotted keys in tables",
     [](int n) {
       const int pairs = (n - 1) / 3;
       return repeated("a.b.c = {", pairs) + "a = 1" + repeated("}", pairs) + "\n";
     }},
    {"behind a string of four quotes",
     [](int n) { return "s = \"\"\"x\"\"\"\"\na = " + repeated("[", n - 1) + repeated("]", n - 1) + "\n"; }},
    {"behind a string of five quotes in the line",
     [](int n) { return "a = ['''x''''', " + repeated("[", n - 2) + repeated("]", n - 2) + "]\n"; }},
    {"behind a comment with a quote",
     [](int n) { return "b = 1 # \" ''' [\na = " + repeated("[", n - 1) + repeated("]", n - 1) + "\n"; }},
    {"behind an escaped quote",
     [](int n) { return "s = \"\\\"\"\na = " + repeated("[", n - 1) + repeated("]", n - 1) + "\n"; }},
    {"never closed", [](int n) { return "a = " + repeated("[", n - 1); }},
};

TEST(Toml, DepthHasABound) {
  for (const auto& [name, nested] : ways) {
    if (std::string_view(name) != "never closed") {
      EXPECT_NO_THROW(parse_toml(nested(max_toml_depth - 3), "t")) << name;
    }
    for (const int depth : {max_toml_depth + 4, 300, 20'000, 200'000}) {
      const std::string said = said_of(nested(depth));
      EXPECT_TRUE(said.starts_with("deep.toml, line ")) << name << ' ' << said;
      expect_says(said, ": keys, arrays and tables are nested 64 deep; expected less");
    }
  }
  expect_says(said_of("b = 1\n\n\n" + dotted(100) + " = 1"), "deep.toml, line 4: ");
}

TEST(Toml, WhatOnlyLooksDeepIsRead) {
  const std::string dots = repeated(".a[{", 1000);
  for (const std::string& written :
       {std::string("a = \"") + dots + "\"\n", "a = '" + dots + "'\n",
        "a = \"\"\"\n" + dots + "\n\"quoted\" \\\"\"\"\n" + dots + "\"\"\"\n",
        "a = '''\n" + dots + "''\n" + dots + "'''\n", "a = 1 # " + dots + "\n", "\"" + dots + "\" = 1\n",
        "a = [" + repeated("0.5, ", 1000) + "1]\n", "a = [" + repeated("[1.5, 2.5], ", 500) + "[]]\n",
        repeated("[[a.b]]\nc.d = 1.5\n", 500), std::string("a = {b = [1.5]}\nc.d = 1\n"),
        std::string("a = \"\"\"\"x\"\"\"\"\"\nb = ''''x'''''\nc = \"\"\ne = ''\n")}) {
    EXPECT_NO_THROW(parse_toml(written, "t")) << written.substr(0, 80);
  }
}

TEST(Toml, SettingsHaveTheBoundToo) {
  TomlTable root;
  for (const int parts : {max_toml_depth + 1, 20'000})
    expect_says(error_of<ConfigError>([&] { set_value(root, dotted(parts) + "=1"); }), "has 64 parts or more");
  EXPECT_NO_THROW(set_value(root, dotted(max_toml_depth) + "=1"));
  TomlTable other;
  set_value(other, "a=" + repeated("[", 20'000));  // no value of TOML is a word
  EXPECT_TRUE(std::holds_alternative<std::string>(find(other, "a")->value));
}

TEST(Toml, AConfigurationOfAnyDepthIsAnAnswer) {
  for (const auto& [name, nested] : ways)
    for (const int depth : {max_toml_depth - 3, 20'000})
      EXPECT_THROW(parse_config(nested(depth), "deep.toml"), ConfigError) << name << ' ' << depth;
}

}  // namespace
}  // namespace gradus::command::toml_test
