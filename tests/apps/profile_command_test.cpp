/// `gradus profile` from end to end on small files: table, JSON, pictures, traces, and what it refuses.
#include <gtest/gtest.h>
#include <array>
#include <filesystem>
#include <fstream>
#include "apps/gradus/profile.h"
#include "apps/gradus/profile_pictures.h"
#include "apps/gradus/suggestion_keys.h"
#include "gradus/formats/json.h"
#include "gradus/gradus.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::profile_command_test {
namespace {
namespace fs = std::filesystem;

class ProfileCommand : public CommandTest {
 protected:
  void SetUp() override {
    write_images("train", 300, 4);
    write_images("test", 50, 4);
    write("config.toml",
          std::string(idx_data) +
              "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 16\nactivation = "
              "\"relu\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n[train]\nepochs = 3\nbatch_size = 32\n");
  }
  ProfileArguments arguments() const { return {.config = root_ / "config.toml", .steps = 25, .output = root_ / "out"}; }
};

TEST_F(ProfileCommand, PrintsATableAndDrawsPictures) {
  ASSERT_EQ(status_of([&] { return profile_training(arguments()); }), ok) << errors_;
  for (const char* part : {"compute", "input wait", "compile", "host", "layer", "kernel", "stage", "sequential/dense"})
    expect_output(part);
  std::istringstream lines(output_);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("try ")) { EXPECT_LE(line.size(), 100U) << line; }
  const std::string page = contents(root_ / "out/report.html");
  for (const char* picture : {"parts of the time", "layers", "timeline", "memory"})
    EXPECT_NE(page.find(text("aria-label=\"", picture, "\"")), std::string::npos) << picture;
  EXPECT_NE(page.find("<title>sequential/dense: "), std::string::npos);  // numbers under the pointer, without scripts
  EXPECT_EQ(page.find("http"), std::string::npos);                       // and without a network
  EXPECT_FALSE(fs::exists(root_ / "out/weights.safetensors"));
}

/// A user of the command has a configuration, not calls of the library.
TEST_F(ProfileCommand, SuggestionsNameKeysOfTheConfiguration) {
  ProfileReport report;
  for (const char* lever :
       {"input", "prefetch", "parallel map", "cache", "compile", "fixed sizes", "batch size", "replicas"})
    report.suggestions.push_back({.lever = lever, .reason = "slow", .gain_seconds = 1, .remedy = "call explain()"});
  name_keys(report, {});
  const std::string config = contents(root_ / "config.toml");
  for (const Suggestion& suggestion : report.suggestions) {
    const std::string& remedy = suggestion.remedy;
    ASSERT_TRUE(remedy.starts_with("in the configuration: ")) << suggestion.lever << remedy;
    const std::size_t begin = remedy.find('`') + 1;
    const std::string key = remedy.substr(begin, remedy.find_first_of("` ", begin) - begin);
    const std::string value = key == "train.batch_size" ? "64" : key == "data.num_parallel_calls" ? "0" : "true";
    EXPECT_NO_THROW(parse_config(config, "config.toml", std::array{key + "=" + value})) << "there is a key " << key;
    EXPECT_NE(text(report).find("slow; " + remedy + ".\n"), std::string::npos) << report;
  }
  name_keys(report, {.cache = true});
  EXPECT_EQ(report.suggestions[0].remedy, "") << "the examples are kept already";
}

TEST_F(ProfileCommand, SpeaksJsonAndWritesTraces) {
  ProfileArguments given = arguments();
  given.json = true;
  given.trace = root_ / "trace.json";
  given.xplane = root_ / "logs";
  ASSERT_EQ(status_of([&] { return profile_training(given); }), ok) << errors_;
  const auto report = parse_json(output_, "stdout");
  const double parts = report.at("compute").get<double>() + report.at("input_wait").get<double>() +
                       report.at("compile").get<double>() + report.at("communication").get<double>() +
                       report.at("host").get<double>();
  EXPECT_NEAR(parts, report.at("seconds").get<double>(), 1e-9);
  EXPECT_FALSE(report.at("rows").empty());
  EXPECT_NO_THROW(parse_json(contents(*given.trace), "trace"));
  EXPECT_TRUE(fs::exists(root_ / "logs/plugins/profile"));
}

TEST_F(ProfileCommand, RunsAsManyStepsAsAsked) {
  ProfileArguments given = arguments();
  given.json = true;
  given.steps = 23;  // more than two passes
  ASSERT_EQ(status_of([&] { return profile_training(given); }), ok) << errors_;
  std::int64_t most = 0;
  const auto report = parse_json(output_, "stdout");
  for (const auto& row : report.at("rows"))
    if (row.at("kind") == "layer") most = std::max(most, row.at("calls").get<std::int64_t>());
  EXPECT_EQ(most, 23);
}

TEST_F(ProfileCommand, WhatCannotBeWrittenIsAnError) {
  ProfileArguments given = arguments();
  given.trace = root_ / "none" / "trace.json";
  EXPECT_NE(status_of([&] { return profile_training(given); }), ok);
  expect_error("none");
  EXPECT_FALSE(fs::exists(root_ / "none"));
  given = arguments();
  write("file", "mine");
  given.output = root_ / "file";
  EXPECT_NE(status_of([&] { return profile_training(given); }), ok);
  EXPECT_EQ(contents(root_ / "file"), "mine");
  given = arguments();
  given.config = root_ / "no.toml";
  EXPECT_NE(status_of([&] { return profile_training(given); }), ok);
  expect_error("no.toml");
}

TEST(ProfilePictures, NamesAreEscaped) {
  const ProfileReport report = profile([] { const ProfileScope scope("<b> & \"c\""); });
  const std::string picture = timeline_svg(report);
  EXPECT_EQ(picture.find("<b>"), std::string::npos);
  EXPECT_NE(picture.find("&lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
}

TEST(ProfilePictures, OfNothingThereAreNone) {
  const ProfileReport nothing;
  EXPECT_TRUE(timeline_svg(nothing).empty());
  EXPECT_TRUE(flame_svg(nothing).empty());
  EXPECT_TRUE(memory_svg(nothing).empty());
  EXPECT_TRUE(parts_svg(nothing).empty());
}

}  // namespace
}  // namespace gradus::command::profile_command_test
