/// Texts as data, and the command from training on one to writing on.
#include "apps/gradus/text.h"
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "tests/apps/command_fixture.h"
#include "tests/errors.h"

namespace gradus::command::text_test {
namespace {
namespace fs = std::filesystem;

TEST(Vocabulary, NumbersTheCharactersOfATextInOrder) {
  const std::string text = "bäb€\n";
  const Vocabulary vocabulary = Vocabulary::of_text(text, "a text");
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.encode(text, "a text"), (std::vector<std::int32_t>{1, 2, 1, 3, 0}));
  EXPECT_EQ(vocabulary[3], "€");
  expect_says(error_of<DataError>([&] { vocabulary.encode("x", "the prompt"); }), "`x` is not in the vocabulary");
  expect_says(error_of<DataError>([] { Vocabulary::of_text("a\xC3", "a text"); }), "byte 1 is no UTF-8");
  expect_says(error_of<DataError>([] { Vocabulary::of_text("", "a text"); }), "empty");
}

TEST(Windows, HoldTheNextCharacters) {
  const Dataset<2> all = windows({0, 1, 2, 3, 4, 5, 6}, 3, 2, "a text");
  EXPECT_EQ(all.cardinality(), 2);
  const auto [x, y] = all.skip(1).first();
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_EQ(y.to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 4, 5}));
  expect_says(error_of<DataError>([] { windows({0, 1, 2}, 3, 1, "a text"); }), "a window needs 4");
}

/// A run in a directory of its own on a text that repeats itself.
class TextCommand : public CommandTest {
 protected:
  void SetUp() override {
    std::ofstream text(root_ / "text.txt");
    for (int i = 0; i < 200; ++i) text << "abcd ";
    std::ofstream(root_ / "config.toml")
        << "[data]\nkind = \"text\"\ntext = \"text.txt\"\ncontext = 8\nstride = 3\n"
           "[[layers]]\ntype = \"embedding\"\nwidth = 8\n[[layers]]\ntype = \"position_embedding\"\n"
           "[[layers]]\ntype = \"transformer_block\"\nheads = 2\nunits = 16\n[[layers]]\ntype = \"scores\"\n"
           "[optimizer]\nlearning_rate = 0.02\n[train]\nepochs = 6\nbatch_size = 32\n";
  }
  std::string output_of(const auto& work) {
    EXPECT_EQ(status_of(work), ok) << errors_;
    return output_;
  }
};

TEST_F(TextCommand, LearnsAndGoesOn) {
  const fs::path run = root_ / "run";
  output_of([&] { return train({.config = root_ / "config.toml", .output = run, .quiet = true}); });
  EXPECT_EQ(Vocabulary::read(run / "vocabulary.json").size(), 5);
  EXPECT_EQ(to_toml(read_config(run / "config.toml")),
            to_toml(parse_config(to_toml(read_config(run / "config.toml")), "again")));
  const SampleArguments likeliest{.run = run, .prompt = "ab", .characters = 13, .temperature = 0};
  EXPECT_EQ(output_of([&] { return sample(likeliest); }), "abcd abcd abcd \n");
  const SampleArguments drawn{.run = run, .characters = 40, .seed = 3, .temperature = 5};
  const std::string once = output_of([&] { return sample(drawn); });
  EXPECT_EQ(once.size(), 41u);
  EXPECT_EQ(output_of([&] { return sample(drawn); }), once);
  SampleArguments other = drawn;
  other.seed = 4;
  EXPECT_NE(output_of([&] { return sample(other); }), once);
  EXPECT_NE(output_of([&] { return eval({.run = run}); }).find("test accuracy"), std::string::npos);
  EXPECT_THROW(sample({.run = run, .prompt = "x"}), DataError);
}

TEST(TextConfig, WhatDoesNotFitIsExplained) {
  const auto error = [](std::string_view data, std::string_view layer) {
    return error_of<ConfigError>([&] {
      parse_config("[data]\nkind = " + std::string(data) + "[[layers]]\n" + std::string(layer), "test.toml");
    });
  };
  expect_says(error("\"text\"\n", "type = \"scores\"\n"), "`data.text` is missing");
  expect_says(error("\"txt\"\n", "type = \"scores\"\n"), "`data.kind` is \"txt\"; did you mean `text`?");
  expect_says(error("\"text\"\ntext = \"a\"\ntest_share = 1\n", "type = \"scores\"\n"), "above 0 and below 1");
  expect_says(error("\"text\"\ntext = \"a\"\n", "type = \"embedding\"\n"), "`layers[0].width` is missing");
  expect_says(error("\"text\"\ntext = \"a\"\nmean = 1\n", "type = \"scores\"\n"), "unknown key `data.mean`");
}

}  // namespace
}  // namespace gradus::command::text_test
