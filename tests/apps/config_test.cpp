/// Configurations: what is read comes back, and every mistake names its line and key.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"

namespace gradus::command {
namespace {

constexpr std::string_view whole = R"(seed = 3
[data]
directory = "/data"
train_images = "a"
train_labels = "b"
test_images = "c"
test_labels = "d"
[[layers]]
type = "flatten"
[[layers]]
type = "dense"
units = 7
activation = "relu"
[optimizer]
type = "sgd"
momentum = 0.9
[train]
epochs = 2
)";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(whole);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Config, IsReadWithDefaults) {
  const TrainConfig config = parse_config(whole, "test.toml");
  EXPECT_EQ(config.seed, 3);
  EXPECT_EQ(config.layers.size(), 2u);
  EXPECT_EQ(config.layers[1].units, 7);
  EXPECT_EQ(config.optimizer.learning_rate, 0.01);
  EXPECT_EQ(config.epochs, 2);
  EXPECT_EQ(config.batch_size, 32);
}

TEST(Config, TheResolvedOneIsReadBack) {
  const std::string once = to_toml(parse_config(whole, "test.toml"));
  EXPECT_EQ(to_toml(parse_config(once, "again.toml")), once);
}

TEST(Config, LayersOfImagesAreReadBack) {
  const std::string text = replaced("[[layers]]\ntype = \"flatten\"\n", R"([[layers]]
type = "reshape"
shape = [28, 28, 1]
[[layers]]
type = "conv2d"
filters = 8
kernel_size = [3, 5]
strides = 2
padding = "same"
[[layers]]
type = "depthwise_conv2d"
kernel_size = 3
[[layers]]
type = "max_pooling2d"
[[layers]]
type = "global_average_pooling2d"
)");
  const TrainConfig config = parse_config(text, "test.toml");
  EXPECT_EQ(config.layers[0].shape, (std::vector<std::int64_t>{28, 28, 1}));
  EXPECT_EQ(config.layers[1].kernel_size, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(config.layers[1].strides, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(config.layers[2].kernel_size, (std::vector<std::int64_t>{3, 3}));
  EXPECT_TRUE(config.layers[3].pool_size.empty());
  const std::string once = to_toml(config);
  EXPECT_EQ(to_toml(parse_config(once, "again.toml")), once);
}

TEST(Config, LettersBeyondAsciiAreKept) {
  const std::string path = "~/données/Одежда~c3 ";
  const TrainConfig config = parse_config(
      "\xEF\xBB\xBF# Комментарий\n" + replaced("train_images = \"a\"", "train_images = \"" + path + "\""), "test.toml");
  EXPECT_EQ(config.data.train_images, path);
  EXPECT_EQ(parse_config(to_toml(config), "again.toml").data.train_images, path);
}

struct Mistake {
  std::string name, from, to, message;
};
class ConfigMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ConfigMistake, IsExplained) {
  try {
    parse_config(replaced(GetParam().from, GetParam().to), "test.toml");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ConfigMistake,
    testing::Values(
        Mistake{"misspelt_key", "epochs = 2", "epoch = 2",
                "line 18: unknown key `train.epoch`; did you mean `epochs`?"},
        Mistake{"misspelt_table", "[optimizer]", "[optimiser]", "unknown key `optimiser`; did you mean `optimizer`?"},
        Mistake{"mistyped_number", "units = 7", "units = \"7\"",
                "line 12: `layers[1].units` is a string; expected an integer"},
        Mistake{"fraction", "epochs = 2", "epochs = 2.5", "`train.epochs` is a number; expected an integer"},
        Mistake{"out_of_range", "epochs = 2", "epochs = 0", "`train.epochs` is 0; expected 1 to"},
        Mistake{"unknown_choice", "\"relu\"", "\"rleu\"", "`layers[1].activation` is \"rleu\"; did you mean `relu`?"},
        Mistake{"unknown_layer", "\"flatten\"", "\"conv\"", "`layers[0].type` is \"conv\""},
        Mistake{"key_of_another_layer", "type = \"flatten\"", "type = \"flatten\"\nunits = 3",
                "unknown key `layers[0].units`"},
        Mistake{"missing_key", "units = 7", "", "`layers[1].units` is missing"},
        Mistake{"missing_data", "train_labels = \"b\"", "", "`data.train_labels` is missing"},
        Mistake{"no_kernel", "type = \"flatten\"", "type = \"conv2d\"\nfilters = 3",
                "`layers[0].kernel_size` is missing"},
        Mistake{"kernel_of_three", "type = \"flatten\"", "type = \"conv2d\"\nfilters = 3\nkernel_size = [1, 2, 3]",
                "`layers[0].kernel_size` has 3 numbers"},
        Mistake{"kernel_of_nothing", "type = \"flatten\"", "type = \"conv2d\"\nfilters = 3\nkernel_size = [0, 1]",
                "`layers[0].kernel_size`: expected an integer or 2 of them"},
        Mistake{"shape_of_nothing", "type = \"flatten\"", "type = \"reshape\"\nshape = []",
                "`layers[0].shape` has 0 numbers"},
        Mistake{"no_layers",
                "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 7\nactivation = \"relu\"\n", "",
                "there are no layers"},
        Mistake{"layers_as_table",
                "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 7\nactivation = \"relu\"\n",
                "[layers]\ntype = \"flatten\"\n", "`layers` is a table; expected tables, [[layers]]"},
        Mistake{"not_finite", "momentum = 0.9", "momentum = nan", "`optimizer.momentum` is nan"},
        Mistake{"key_of_another_optimizer", "momentum = 0.9", "beta_1 = 0.9", "unknown key `optimizer.beta_1`"},
        Mistake{"broken_toml", "seed = 3", "seed = = 3", "test.toml, line 1"},
        Mistake{"letter_out_of_place", "seed = 3", "seed = п", "test.toml, line 1"},
        Mistake{"unknown_key_beyond_ascii", "seed = 3", "\"é\" = 3", "unknown key `é`"},
        Mistake{"not_utf8", "seed = 3", "# \xC3(", "this is not UTF-8"},
        Mistake{"header_of_no_key", "seed = 3", "[/", "this is not TOML"}),
    [](const auto& info) { return info.param.name; });

TEST(Config, AFileThatIsNotThereIsUnavailable) {
  EXPECT_THROW(read_config("/nowhere/at/all.toml"), Unavailable);
  EXPECT_THROW(read_config("/"), Unavailable);
}

}  // namespace
}  // namespace gradus::command
