/// Configurations: what is read comes back, and every mistake names its line and key.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "apps/gradus/model.h"
#include "gradus/ops/constant.h"
#include "gradus/train/named_parts.h"
#include "tests/errors.h"

namespace gradus::command::config_test {
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

TEST(Config, DistributionIsReadBack) {
  EXPECT_FALSE(parse_config(whole, "test.toml").distribute.has_value());
  const std::string once = to_toml(parse_config(std::string(whole) + "[distribute]\n", "test.toml"));
  EXPECT_EQ(parse_config(once, "again.toml").distribute.value().micro_shards, 8);
  EXPECT_FALSE(parse_config(once, "again.toml").distribute->shard_optimizer);
  const TrainConfig divided = parse_config(
      whole, "test.toml", std::vector<std::string>{"distribute.shard_optimizer=true", "distribute.bf16_sums=true"});
  EXPECT_TRUE(parse_config(to_toml(divided), "again.toml").distribute.value().shard_optimizer);
  EXPECT_TRUE(parse_config(to_toml(divided), "again.toml").distribute->bf16_sums);
  const auto with = [](const char* value) {
    return error_of<ConfigError>(
        [&] { parse_config(whole, "test.toml", std::vector{std::string("distribute.micro_shards=") + value}); });
  };
  for (const char* wrong : {"0", "-1", "20000", "\"eight\""}) expect_says(with(wrong), "micro_shards");
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

/// What is in no configuration, and what is in all of them.
struct OptimizerCase {
  std::string type;
  double learning_rate;
  OptimizerOptions defaults;
};

TEST(Config, EveryOptimizerHasTheLibrarysDefaults) {
  for (const OptimizerCase& each : std::vector<OptimizerCase>{{"sgd", 0.01, SGDOptions{}},
                                                              {"rmsprop", 0.001, RMSpropOptions{}},
                                                              {"adam", 0.001, AdamOptions{}},
                                                              {"adamw", 0.001, AdamWOptions{}},
                                                              {"nadam", 0.001, AdamOptions{}},
                                                              {"adamax", 0.001, AdamOptions{}},
                                                              {"lamb", 0.001, AdamOptions{}},
                                                              {"adagrad", 0.001, AdagradOptions{}},
                                                              {"adadelta", 0.001, AdadeltaOptions{}},
                                                              {"ftrl", 0.001, FtrlOptions{}},
                                                              {"lion", 0.001, LionOptions{}}}) {
    const TrainConfig config =
        parse_config(replaced("type = \"sgd\"\nmomentum = 0.9", "type = \"" + each.type + "\""), "test.toml");
    EXPECT_EQ(config.optimizer.learning_rate, each.learning_rate) << each.type;
    EXPECT_EQ(to_toml(TomlTable(table_of(config.optimizer))),
              to_toml(TomlTable(table_of({each.type, each.learning_rate, {}, each.defaults}))))
        << each.type;
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config)) << each.type;
    EXPECT_EQ(make_optimizer(config.optimizer).learning_rate(), each.learning_rate) << each.type;
  }
}

TEST(Config, EveryActivationOfTheLibraryIsTaken) {
  for (const std::string& name : activation_names()) {
    const TrainConfig config =
        parse_config(replaced("activation = \"relu\"", "activation = \"" + name + "\""), "test.toml");
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config)) << name;
    Sequential model = make_model(config);
    EXPECT_NO_THROW((void)model(zeros({2, 28, 28}))) << name;
  }
}

TEST(Config, EveryLossAndMetricOfTheLibraryIsTaken) {
  const auto data_of = [](bool of_classes) {
    const auto none = data::from_tensor_slices(zeros({1, 1}), zeros({1, 1}));
    Data data{.train = {none, 1}, .test = {none, 1}, .input = {f32, {any_size, 1}}};
    data.facts.of_classes = of_classes;
    return data;
  };
  const Tensor labels = constant({0, 2, 1}), numbers = constant({{1.0f}, {0.0f}, {1.0f}});
  const Tensor logits = random::normal({3, 6}, {.seed = 1}), predicted = random::uniform({3, 1}, {.seed = 1});
  for (const LossByName& loss : named_losses()) {
    const TrainConfig config =
        parse_config(replaced("[train]", "[train]\nloss = \"" + std::string(loss.name) + "\""), "test.toml");
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config)) << loss.name;
    const LossFunction made = make_loss(config, data_of(loss.of_classes));
    const Loss value = loss.of_classes ? made(labels, logits) : made(numbers, predicted);
    EXPECT_TRUE(std::isfinite(value.item())) << loss.name;
    EXPECT_EQ(value.weight().item(), 3) << loss.name;
    EXPECT_THROW(make_loss(config, data_of(!loss.of_classes)), ConfigError) << loss.name;
  }
  for (const MetricByName& metric : named_metrics()) {
    const TrainConfig config =
        parse_config(replaced("[train]", "[train]\nmetrics = [\"" + std::string(metric.name) + "\"]"), "test.toml");
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config)) << metric.name;
    std::vector<Metric> made = make_metrics(config, data_of(metric.of_classes));
    if (metric.of_classes) made.back().update(labels, logits);
    else made.back().update(numbers, predicted);
    EXPECT_EQ(made.back().name(), metric.name);
    EXPECT_TRUE(std::isfinite(made.back().result())) << metric.name;
    EXPECT_THROW(make_metrics(config, data_of(!metric.of_classes)), ConfigError) << metric.name;
  }
  expect_says(
      error_of<ConfigError>([] { parse_config(replaced("[train]", "[train]\nmetrics = [\"r2_scor\"]"), "test.toml"); }),
      "r2_score");
}

TEST(Config, KeysOfAnOptimizerReachIt) {
  const TrainConfig config = parse_config(
      replaced("momentum = 0.9", "momentum = 0.8\nnesterov = true\nlearning_rate = 1\nuse_ema = true\nclipvalue = 2"),
      "test.toml");
  const auto& options = std::get<SGDOptions>(config.optimizer.options);
  EXPECT_EQ(options.momentum, 0.8);
  EXPECT_TRUE(options.nesterov);
  EXPECT_TRUE(options.use_ema);
  EXPECT_EQ(options.clipvalue, 2);
  EXPECT_EQ(config.optimizer.learning_rate, 1);
}

TEST(Config, GroupsPenaltiesAndWeightsAreReadBack) {
  std::string text = replaced("activation = \"relu\"",
                              "activation = \"relu\"\nkernel_regularizer = { l2 = 0.25 }\n"
                              "activity_regularizer = { l1 = 0.5, l2 = 1 }");
  text +=
      "class_weight = [1, 0.5]\n[[optimizer.groups]]\nvariables = [\"bias\", \"dense/\"]\nlearning_rate = 0\n"
      "[[optimizer.groups]]\nvariables = [\"kernel\"]\nweight_decay = 0.5\n"
      "schedule = { type = \"polynomial_decay\", decay_steps = 10, end_learning_rate = 0.25 }\n";
  const TrainConfig config = parse_config(text, "test.toml");
  EXPECT_EQ(config.layers[1].kernel_regularizer.value().l1, 0);
  EXPECT_EQ(config.layers[1].kernel_regularizer.value().l2, 0.25);
  EXPECT_FALSE(config.layers[1].bias_regularizer);
  EXPECT_EQ(config.layers[1].activity_regularizer.value().l1, 0.5);
  EXPECT_EQ(config.class_weight, (std::vector<double>{1, 0.5}));
  ASSERT_EQ(config.optimizer.groups.size(), 2u);
  EXPECT_EQ(config.optimizer.groups[0].variables, (std::vector<std::string>{"bias", "dense/"}));
  EXPECT_EQ(config.optimizer.groups[0].learning_rate, 0);
  EXPECT_FALSE(config.optimizer.groups[0].weight_decay);
  EXPECT_FALSE(config.optimizer.groups[0].schedule);
  EXPECT_EQ(config.optimizer.groups[1].weight_decay, 0.5);
  EXPECT_EQ(config.optimizer.groups[1].schedule.value().type, "polynomial_decay");
  const std::string once = to_toml(config);
  EXPECT_EQ(to_toml(parse_config(once, "again.toml")), once);
}

struct ScheduleCase {
  std::string keys;
  std::int64_t step;
  double rate;  // by hand
};

TEST(Config, EverySchedule) {
  for (const ScheduleCase& each : std::vector<ScheduleCase>{
           {"type = \"cosine_decay\"\ndecay_steps = 10\nalpha = 0.5", 10, 0.25},
           {"type = \"cosine_decay\"\ndecay_steps = 10\nwarmup_steps = 4\nwarmup_target = 1", 2, 0.75},
           {"type = \"cosine_decay_restarts\"\nfirst_decay_steps = 10", 5, 0.25},
           {"type = \"polynomial_decay\"\ndecay_steps = 10\nend_learning_rate = 0", 5, 0.25},
           {"type = \"inverse_time_decay\"\ndecay_steps = 10\ndecay_rate = 1", 10, 0.25},
           {"type = \"exponential_decay\"\ndecay_steps = 10\ndecay_rate = 0.5", 10, 0.25},
           {"type = \"one_cycle\"\ntotal_steps = 100\ndiv_factor = 10", 0, 0.05},
           {"type = \"piecewise_constant_decay\"\nboundaries = [3, 6]\nvalues = [0.3, 0.2, 0.1]", 5, 0.2}}) {
    const TrainConfig config = parse_config(
        replaced("momentum = 0.9", "learning_rate = 0.5\n[optimizer.schedule]\n" + each.keys), "test.toml");
    EXPECT_NEAR(make_schedule(config.optimizer)(each.step), each.rate, 1e-12) << each.keys;
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config)) << each.keys;
  }
}

TEST(Config, GroupsHaveSchedulesOfTheirOwn) {
  const std::string schedule = "[optimizer.groups.schedule]\ntype = \"polynomial_decay\"\ndecay_steps = 2\n";
  const TrainConfig config =
      parse_config(replaced("momentum = 0.9",
                            "learning_rate = 0.5\n[optimizer.schedule]\ntype = \"inverse_time_decay\"\n"
                            "decay_steps = 1\ndecay_rate = 1\n"
                            "[[optimizer.groups]]\nvariables = [\"a\"]\nlearning_rate = 0.125\n"
                            "[[optimizer.groups]]\nvariables = [\"b\"]\nlearning_rate = 0.25\n" +
                                schedule + "end_learning_rate = 0.125\n[[optimizer.groups]]\nvariables = [\"c\"]\n" +
                                schedule + "end_learning_rate = 0\n"),
                   "test.toml");
  Variable a(zeros({}), "a"), b(zeros({}), "b"), c(zeros({}), "c"), d(zeros({}), "d");
  const Variables all{a, b, c, d};
  Optimizer optimizer = make_optimizer(config.optimizer);
  add_parameter_groups(optimizer, config.optimizer, all);
  for (const std::vector<double>& rates : std::vector<std::vector<double>>{
           {0.5, 0.125, 0.25, 0.5}, {0.25, 0.125, 0.1875, 0.25}, {0.5 / 3, 0.125, 0.125, 0}}) {
    for (std::size_t group = 0; group < rates.size(); ++group)
      EXPECT_NEAR(optimizer.learning_rate(group), rates[group], 1e-15) << group << " at " << optimizer.iterations();
    optimizer.apply_gradients(Gradients(all, Tensors(4, ones({})), constant(1.f)));
  }
}

TEST(Config, CallbacksAndCheckpointsAreReadBack) {
  const TrainConfig config = parse_config(std::string(whole) + R"(
policy = "mixed_bfloat16"
loss = "huber"
[checkpoints]
every_steps = 7
max_to_keep = 0
[callbacks]
time_limit = 60
csv_logger = true
[callbacks.early_stopping]
patience = 3
monitor = "validation_loss"
mode = "max"
baseline = 0.5
[callbacks.reduce_lr_on_plateau]
factor = 0.5
[callbacks.model_checkpoint]
save_best_only = false
[callbacks.tensorboard]
histogram_freq = 2
)",
                                          "test.toml");
  EXPECT_EQ(config.policy, "mixed_bfloat16");
  EXPECT_EQ(config.checkpoints.every_steps, 7);
  EXPECT_EQ(config.checkpoints.max_to_keep, 0);
  EXPECT_EQ(config.callbacks.early_stopping.value().patience, 3);
  EXPECT_EQ(config.callbacks.early_stopping->mode, MonitorMode::max);
  EXPECT_EQ(config.callbacks.early_stopping->baseline, 0.5);
  EXPECT_TRUE(config.callbacks.early_stopping->restore_best_weights);
  EXPECT_EQ(config.callbacks.reduce_lr_on_plateau.value().factor, 0.5);
  EXPECT_EQ(config.callbacks.reduce_lr_on_plateau->patience, ReduceLROnPlateauOptions{}.patience);
  EXPECT_FALSE(config.callbacks.model_checkpoint.value().save_best_only);
  EXPECT_EQ(config.callbacks.tensorboard.value().histogram_freq, 2);
  EXPECT_EQ(config.callbacks.time_limit, 60);
  EXPECT_EQ(to_toml(parse_config(to_toml(config), "again.toml")), to_toml(config));
}

TEST(Config, EveryKindOfDataIsReadBack) {
  for (const std::string keys :
       {"kind = \"images\"\ntrain = \"a\"\nheight = 8\nwidth = 9\nchannels = 1\nmean = 0.5",
        "kind = \"npz\"\nfile = \"a.npz\"\ntest_x = \"x\"\ntest_y = \"y\"",
        "kind = \"csv\"\ntrain = \"a\"\ntest = \"b\"\nlabel = \"y\"\nseparator = \";\"\nmissing_value = 0\n"
        "categories = [\"a\", \"b\"]\nheader = false\nsample_weight = \"w\"",
        "kind = \"text\"\ntext = \"a\"\ncontext = 3"}) {
    const std::string once =
        to_toml(parse_config("[data]\n" + keys + "\n[[layers]]\ntype = \"flatten\"\n", "test.toml"));
    EXPECT_EQ(to_toml(parse_config(once, "again.toml")), once);
    EXPECT_NE(once.find(keys.substr(0, keys.find('\n'))), std::string::npos) << once;
  }
}

TEST(Config, SettingsTakeThePlaceOfWhatIsWritten) {
  const std::vector<std::string> settings{"layers[1].units=9",
                                          "optimizer.type=adam",
                                          "train.epochs=5",
                                          "seed=8",
                                          "data.train_images=a b.idx",
                                          "optimizer.schedule.type=cosine_decay",
                                          "optimizer.schedule.decay_steps=4"};
  const TrainConfig config = parse_config(replaced("momentum = 0.9", ""), "test.toml", settings);
  EXPECT_EQ(config.layers[1].units, 9);
  EXPECT_EQ(config.optimizer.type, "adam");
  EXPECT_EQ(config.epochs, 5);
  EXPECT_EQ(config.seed, 8);
  EXPECT_EQ(config.data.train_images, "a b.idx");
  EXPECT_EQ(config.optimizer.schedule.value().type, "cosine_decay");
  for (const auto& [setting, message] : std::vector<std::pair<std::string, std::string>>{
           {"train.epochs", "expected KEY=VALUE"},
           {"=3", "expected KEY=VALUE"},
           {"train.epoch=3", "unknown key `train.epoch`; did you mean `epochs`?"},
           {"train.epochs=three", "`train.epochs` is a string; expected an integer"},
           {"layers[2].units=3", "`layers` has 2 elements"},
           {"layers[x].units=3", "expected a number in the brackets"},
           {"seed.units=3", "what is before `units` is an integer"}})
    expect_says(error_of<ConfigError>([&] { parse_config(whole, "test.toml", std::vector{setting}); }), message);
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
        Mistake{"unknown_optimizer", "type = \"sgd\"", "type = \"adm\"",
                "line 15: `optimizer.type` is \"adm\"; did you mean `adam`?"},
        Mistake{"what_the_library_refuses", "momentum = 0.9", "momentum = 1.5",
                "line 16: `optimizer.momentum`: SGD: momentum must be within 0 and 1, got 1.5"},
        Mistake{"two_clips", "momentum = 0.9", "clipnorm = 1\nglobal_clipnorm = 1", "line 16: `optimizer.clipnorm`"},
        Mistake{"schedule_without_type", "momentum = 0.9", "[optimizer.schedule]\ndecay_steps = 3",
                "`optimizer.schedule.type` is missing"},
        Mistake{"schedule_without_steps", "momentum = 0.9", "[optimizer.schedule]\ntype = \"cosine_decay\"",
                "decay_steps must be positive, got 0"},
        Mistake{"rate_of_a_schedule", "momentum = 0.9",
                "[optimizer.schedule]\ntype = \"cosine_decay\"\ninitial_learning_rate = 1",
                "line 18: `optimizer.schedule.initial_learning_rate` is said by optimizer.learning_rate"},
        Mistake{"key_of_another_schedule", "momentum = 0.9",
                "[optimizer.schedule]\ntype = \"cosine_decay\"\ndecay_steps = 3\npower = 2",
                "line 19: unknown key `optimizer.schedule.power`"},
        Mistake{"group_of_nothing", "momentum = 0.9", "[[optimizer.groups]]\nvariables = []\nlearning_rate = 1",
                "`optimizer.groups[0].variables` expected parts of names"},
        Mistake{"group_that_says_nothing", "momentum = 0.9", "[[optimizer.groups]]\nvariables = [\"bias\"]",
                "belong to a group that says neither"},
        Mistake{"rate_of_a_group", "momentum = 0.9", "[[optimizer.groups]]\nvariables = [\"bias\"]\nlearning_rate = -1",
                "line 18: `optimizer.groups[0].learning_rate` is -1"},
        Mistake{"schedule_of_a_group", "momentum = 0.9",
                "[[optimizer.groups]]\nvariables = [\"bias\"]\nschedule = { type = \"cosine_decay\" }",
                "line 18: [optimizer.groups[0].schedule]: CosineDecay: decay_steps must be positive, got 0"},
        Mistake{"penalty_below_zero", "units = 7", "units = 7\nkernel_regularizer = { l2 = -1 }",
                "`layers[1].kernel_regularizer.l2`"},
        Mistake{"penalty_of_flatten", "type = \"flatten\"", "type = \"flatten\"\nkernel_regularizer = { l2 = 1 }",
                "unknown key `layers[0].kernel_regularizer`"},
        Mistake{"weight_below_zero", "epochs = 2", "class_weight = [1, -1]", "line 18: `train.class_weight`"},
        Mistake{"weights_of_images", "directory", "sample_weight = \"w\"\ndirectory",
                "unknown key `data.sample_weight`"},
        Mistake{"unknown_policy", "epochs = 2", "policy = \"mixed_bfloat\"",
                "`train.policy` is \"mixed_bfloat\"; did you mean `mixed_bfloat16`?"},
        Mistake{"unknown_callback", "epochs = 2", "[callbacks.early_stoping]",
                "unknown key `callbacks.early_stoping`; did you mean `early_stopping`?"},
        Mistake{"option_of_a_callback", "epochs = 2", "[callbacks.reduce_lr_on_plateau]\nfactor = 2",
                "line 19: `callbacks.reduce_lr_on_plateau.factor`"},
        Mistake{"callback_as_a_value", "epochs = 2", "[callbacks]\nearly_stopping = 3",
                "`callbacks.early_stopping` is an integer; expected a table, [callbacks.early_stopping]"},
        Mistake{"unknown_mode", "epochs = 2", "[callbacks.early_stopping]\nmode = \"maximum\"",
                "`callbacks.early_stopping.mode` is \"maximum\""},
        Mistake{"kind_of_data", "directory", "kind = \"imges\"\ndirectory",
                "line 3: `data.kind` is \"imges\"; did you mean `images`?"},
        Mistake{"a_date", "epochs = 2", "epochs = 2020-01-01", "`train.epochs` is a date or time"},
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
}  // namespace gradus::command::config_test
