/// `gradus compile` and `gradus export`: models and training steps as object files, and as text for accelerators.
#include <gtest/gtest.h>
#include <cmath>
#include <fstream>
#include "apps/gradus/experiment.h"
#include "gradus/gradus.h"
#include "tests/apps/command_fixture.h"
#include "tests/export/loaded_object.h"
#include "tests/instruction_sets.h"
#include "tests/new_process.h"

namespace gradus::command::compile_command_test {
namespace {

class CompileCommand : public CommandTest {
 protected:
  int compiled(const CompileArguments& arguments) {
    return status_of([&] { return compile_object(arguments); });
  }
  LoadedObject loaded(const std::string& name) const {
    return LoadedObject({root_ / (name + ".o"), root_ / (name + ".h")});
  }
  std::string contents(const std::string& name) const {
    std::ifstream file(root_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write_images_and_config() const {
    write_images("train", 64, 8);
    write_images("test", 16, 8);
    write("config.toml", text(idx_data,
                              "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n"
                              "[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.1\n[train]\nbatch_size = 16\n"));
  }
};

TEST_F(CompileCommand, AnOnnxModelBecomesAnObject) {
  export_onnx(root_ / "double.onnx", [](auto in) { return Tensors{in[0] + in[0]}; }, {{f32, {2, 2}}});
  ASSERT_EQ(compiled({.source = root_ / "double.onnx", .stem = root_ / "twice"}), ok) << errors_;
  expect_output((root_ / "twice.o").string());
  float x[] = {1, 2, 3, 4}, y[4] = {};
  loaded("twice").run(x, y);
  EXPECT_EQ(std::vector<float>(y, y + 4), std::vector<float>({2, 4, 6, 8}));
  EXPECT_EQ(compiled({.source = root_ / "double.onnx", .stem = root_ / "twice", .train = true}), usage);
  expect_error("no training step");
}

/// Before the model is read: here there is none.
TEST_F(CompileCommand, PlacesThatCannotBeRightAreRefused) {
  const auto refused = [&](const std::optional<std::filesystem::path>& weights, const char* words) {
    EXPECT_EQ(compiled({.source = root_ / "none.onnx", .stem = root_ / "net", .weights = weights}), usage);
    expect_error(words);
  };
  for (const auto& place : {root_ / "net.o", root_ / "." / "net.h"}) refused(place, "--weights of gradus compile");
  refused("", "--weights: expected the path of a file");
  refused(root_ / "none" / "", "name a file in it, such as net.weights");
  refused(root_, "is a directory");
  std::filesystem::create_directory(root_ / "net.h");
  refused({}, "net.h is a directory");
  std::filesystem::remove(root_ / "net.h");
  write("none.onnx", "no model");  // the command would read it
  refused(root_ / "." / "none.onnx", "--weights: expected a file to write, given ");
  EXPECT_EQ(contents("none.onnx"), "no model");
  std::filesystem::create_directory(root_ / "run");
  write("run/weights.safetensors", "trained");
  EXPECT_EQ(compiled({.source = root_ / "run", .stem = root_ / "net", .weights = root_ / "run/weights.safetensors"}),
            usage);
  expect_error("which belongs to ");
  EXPECT_EQ(contents("run/weights.safetensors"), "trained");
}

TEST_F(CompileCommand, ExportsText) {
  const auto exported = [&](const ExportArguments& arguments) {
    return status_of([&] { return export_text(arguments); });
  };
  export_onnx(root_ / "double.onnx", [](auto in) { return Tensors{in[0] + in[0]}; }, {{f32, {2, 2}}});
  ASSERT_EQ(exported({.source = root_ / "double.onnx", .stablehlo = root_ / "twice.mlir"}), ok) << errors_;
  expect_output((root_ / "twice.mlir").string());
  EXPECT_NE(contents("twice.mlir").find("stablehlo.add %arg0, %arg0 : tensor<2x2xf32>"), std::string::npos);
  EXPECT_NE(exported({.source = root_ / "double.onnx", .stablehlo = root_ / "t.mlir", .train = true}), ok);
  expect_error("no training step");
  write_images_and_config();
  ASSERT_EQ(exported({.source = root_ / "config.toml", .stablehlo = root_ / "step.mlir", .train = true}), ok)
      << errors_;
  const std::string step = contents("step.mlir");
  for (const char* const expected : {"func.func public @main", "tf.aliasing_output", "Variable"})
    EXPECT_NE(step.find(expected), std::string::npos) << expected << "\n" << step.substr(0, 2000);
}

TEST_F(CompileCommand, AConfigurationGivesPredictionsAndATrainingStep) {
  write_images_and_config();
  ASSERT_EQ(compiled({.source = root_ / "config.toml", .stem = root_ / "predict", .data_directory = root_}), ok)
      << errors_;
  ASSERT_EQ(
      compiled({.source = root_ / "config.toml", .stem = root_ / "learn", .train = true, .data_directory = root_}), ok)
      << errors_;
  const LoadedObject learn = loaded("learn");
  std::vector<std::uint8_t> x(16 * 8 * 8);  // as the files have them
  std::vector<std::int32_t> y(16);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = k / 16 % 4 == k / 64 % 4 ? 255 : 0;
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<std::int32_t>(k % 4);
  const float first = learn.step(x.data(), y.data());
  float last = first;
  for (int k = 0; k < 50; ++k) last = learn.step(x.data(), y.data());
  EXPECT_LT(last, first);
  EXPECT_EQ(compiled({.source = root_ / "config.toml", .stem = root_ / "no name", .data_directory = root_}), usage);
  expect_error("name in C");
  EXPECT_EQ(compiled({.source = root_ / "config.toml", .stem = root_ / "int", .data_directory = root_}), usage);
  expect_error("choose another, such as step_int");
}

/// Parts of a batch, penalties and passes that are left out: the keys of [train] that change bits.
TEST_F(CompileCommand, ATrainingStepHasTheBitsOfFit) {
  const Threads one(1);
  write_images("train", 64, 8);
  write_images("test", 16, 8);
  const Tensor pixels = cast(random::integers({16, 8, 8}, {.high = 256, .seed = 1}), u8),
               labels = random::integers({16}, {.high = 4, .seed = 2});
  for (const char* const line : {"", "micro_batch = 5\n", "micro_batch = 64\n", "disable = [\"winograd\"]\n"}) {
    SCOPED_TRACE(line);
    write("config.toml",
          text(idx_data,
               "[[layers]]\ntype = \"reshape\"\nshape = [8, 8, 1]\n"
               "[[layers]]\ntype = \"conv2d\"\nfilters = 64\nkernel_size = 1\nactivation = \"relu\"\n"
               "[[layers]]\ntype = \"conv2d\"\nfilters = 64\nkernel_size = 3\npadding = \"same\"\n"
               "kernel_regularizer = { l2 = 1e-3 }\nactivity_regularizer = { l2 = 1e-3 }\n"
               "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n"
               "[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.1\nmomentum = 0.9\n[train]\nbatch_size = 16\n",
               line));
    ASSERT_EQ(compiled({.source = root_ / "config.toml", .stem = root_ / "learn", .train = true}), ok) << errors_;
    const LoadedObject learn = loaded("learn");
    const TrainConfig config = read_config(root_ / "config.toml");
    const Data data = load_data(config.data);
    Experiment same = make_experiment(config, data);
    fit(same.model, same.optimizer, same.loss,
        data::from_tensor_slices(prepared(pixels, config.data), labels).batch(16), same.options);
    learn.step(pixels.span<std::uint8_t>().data(), labels.span<std::int32_t>().data());
    learn.expect_equals(same.model.variables() + same.optimizer.variables());
  }
}

TEST_F(CompileCommand, AStepSaysWhatItsWeightsAreAndThatItHasNoShards) {
  write_images_and_config();
  write("weighted.toml", contents("config.toml") + "class_weight = [1.0, 2.5, 3.0, 4.0]\nreplicas = 2\n");
  ASSERT_EQ(compiled({.source = root_ / "weighted.toml", .stem = root_ / "learn", .train = true}), ok) << errors_;
  expect_error("not those of a training with train.replicas");
  EXPECT_NE(
      contents("learn.h").find("/* input_2 is how much each example counts in the loss: what examples of its class "
                               "count, for classes 0, 1, ...: 1 2.5 3 4. */"),
      std::string::npos)
      << contents("learn.h");
}

/// What the documents show first: the model of a run predicts, one row at a time or several, for either processor, with
/// its weights in the object or in a file.
TEST_F(CompileCommand, ARunPredicts) {
  const Threads one(1);
  write_images_and_config();
  ASSERT_EQ(status_of([&] {
              return train({.config = root_ / "config.toml",
                            .data_directory = root_,
                            .output = root_ / "run",
                            .epochs = 1,
                            .quiet = true});
            }),
            ok)
      << errors_;
  for (const char* const data : {"train_images", "train_labels", "test_images", "test_labels"})
    std::filesystem::remove(root_ / data);  // a prediction needs none
  const TrainConfig config = read_config(root_ / "run" / "config.toml");
  Sequential model = make_model(config, 4);
  model.build({f32, {any_size, 8, 8}});
  load_safetensors(root_ / "run" / "weights.safetensors", model);
  const CompileArguments plain{.source = root_ / "run", .stem = root_ / "net"};
  const auto expect_predictions = [&](const CompileArguments& arguments, std::int64_t rows) {
    ASSERT_EQ(compiled(arguments), ok) << errors_;
    const LoadedObject net({root_ / "net.o", root_ / "net.h", arguments.weights.value_or(std::filesystem::path())});
    const Tensor pixels = cast(random::integers({rows, 8, 8}, {.high = 256, .seed = 1}), u8);
    std::vector<float> scores(static_cast<std::size_t>(4 * rows));
    net.run(pixels.span<std::uint8_t>().data(), scores.data());
    const auto predict = function([&](Tensor x) { return model(prepared(x, config.data), inference); });
    EXPECT_EQ(scores, predict(pixels).to_vector<float>());
  };
  expect_predictions(plain, 1);
  CompileArguments rows = plain;
  rows.batch_size = 3;
  expect_predictions(rows, 3);
  CompileArguments lesser = plain;
  lesser.instruction_set = cpu_backend::name(narrowest_isa());
  expect_predictions(lesser, 1);
  lesser.instruction_set = "sse";
  EXPECT_NE(compiled(lesser), ok);
  expect_error("sse");
  CompileArguments elsewhere = plain;
  elsewhere.target = "riscv64-linux-gnu";
  EXPECT_NE(compiled(elsewhere), ok);
  expect_error("--target of gradus compile): expected ");
  elsewhere.target = "aarch64-linux-gnu", elsewhere.instruction_set = "avx2";
  EXPECT_NE(compiled(elsewhere), ok);
  expect_error("avx2 is of x86_64-linux-gnu, and the object is for aarch64-linux-gnu");
  CompileArguments apart = rows;
  apart.weights = root_ / "net.weights";
  expect_predictions(apart, 3);
  expect_output(apart.weights->string());
  EXPECT_NE(contents("net.h").find("net_weights_bytes"), std::string::npos);
}

TEST_F(CompileCommand, TheStepOfARunGoesOnFromItsCheckpoint) {
  write_images_and_config();
  std::ofstream(root_ / "config.toml", std::ios::app) << "epochs = 3\n";
  ASSERT_EQ(status_of([&] {
              return train({.config = root_ / "config.toml",
                            .data_directory = root_,
                            .output = root_ / "run",
                            .settings = {"optimizer.momentum=0.9"},
                            .quiet = true});
            }),
            ok)
      << errors_;
  ASSERT_EQ(compiled({.source = root_ / "run", .stem = root_ / "learn", .train = true}), ok) << errors_;
  EXPECT_EQ(errors_, "");
  const LoadedObject learn = loaded("learn");

  const TrainConfig config = read_config(root_ / "run" / "config.toml");
  Experiment here = make_experiment(config, load_data(config.data, root_ / "run"));
  ASSERT_TRUE(Checkpoints({.directory = root_ / "run" / "checkpoints"}, here.model, here.optimizer).restore());
  std::vector<std::uint8_t> pixels(16 * 8 * 8, 77);
  std::vector<std::int32_t> labels(16, 3);
  const Tensor images = from_values(pixels, {16, 8, 8}), y = from_values(labels, {16});
  const auto step_here = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = here.loss(y, here.model(prepared(x, config.data), training));
    here.optimizer.apply_gradients(tape.gradient(loss, here.model.trainable_variables()));
    return loss;
  });
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(learn.step(pixels.data(), labels.data()), step_here(images).item()) << "step " << step;

  std::filesystem::remove_all(root_ / "run" / "checkpoints");
  ASSERT_EQ(compiled({.source = root_ / "run", .stem = root_ / "anew", .train = true}), ok) << errors_;
  expect_error("the optimizer of the step starts from the beginning");
}

TEST_F(CompileCommand, ARunTrainsAndPredictsInOneObject) {
  const Threads one(1);
  write_images_and_config();
  ASSERT_EQ(compiled({.source = root_ / "config.toml", .stem = root_ / "net", .train = true, .predict = true}), ok)
      << errors_;
  const LoadedObject net = loaded("net");
  const auto learn = net.function<float (*)(void*, const std::uint8_t*, const std::int32_t*)>("_train");
  const auto predict = net.function<void (*)(void*, const std::uint8_t*, float*)>("_predict");
  std::vector<std::uint8_t> x(16 * 8 * 8);
  std::vector<std::int32_t> y(16);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = k / 16 % 4 == k / 64 % 4 ? 255 : 0;
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<std::int32_t>(k % 4);
  for (int k = 0; k < 200; ++k) learn(net.state(), x.data(), y.data());
  for (std::size_t row = 0; row < 4; ++row) {
    float scores[4];
    predict(net.state(), x.data() + row * 64, scores);
    EXPECT_EQ(std::max_element(scores, scores + 4) - scores, y[row]);
  }
}

/// A program in C that knows the header alone: it finds columns and words by their names, and says the classes that
/// `gradus predict` says.
TEST_F(CompileCommand, TheHeaderOfATableSaysItsColumnsAndWords) {
  std::string table = "shop,width,height,kind\n", asked = "height,width,shop\n";
  const std::string shops[] = {"\"north, east\"",
                               "south?"
                               "?(",
                               "sm\xC3\xA5land"};
  for (int i = 0; i < 200; ++i) {
    const int width = 1000 + (i * 7) % 100;
    table += text(shops[i % 3], ',', width, ',', i % 9, ',', width < 1050 ? "slim" : "wide", '\n');
    if (i < 20) asked += text(i % 9, ',', width, ',', shops[i % 3], '\n');
  }
  write("data.csv", table);
  write("asked.csv", asked);
  for (const std::string encoding : {"integer", "one_hot", "embedding"}) {
    SCOPED_TRACE(encoding);
    write("config.toml", text("[data]\nkind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\n",
                              "categories = [\"kind\", \"shop\"]\nmissing_value = 4\ncategory_encoding = \"", encoding,
                              "\"\n[[layers]]\ntype = \"normalization\"\n[[layers]]\ntype = \"dense\"\nunits = 8\n",
                              "activation = \"relu\"\n[[layers]]\ntype = \"scores\"\n[optimizer]\ntype = \"adam\"\n",
                              "learning_rate = 0.01\n[train]\nepochs = 5\nbatch_size = 16\n"));
    std::filesystem::remove_all(root_ / "run");
    ASSERT_EQ(
        status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "run", .quiet = true}); }), ok)
        << errors_;
    ASSERT_EQ(compiled({.source = root_ / "run", .stem = root_ / "net"}), ok) << errors_;
    ASSERT_EQ(status_of([&] { return predict_examples({.run = root_ / "run", .input = root_ / "asked.csv"}); }), ok)
        << errors_;
    std::string expected;
    std::istringstream lines(output_);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) expected += line.substr(line.find(',') + 1, 4) + '\n';
    std::string rows;
    for (int i = 0; i < 20; ++i)
      rows += text("  {", i % 9, ", ", 1000 + (i * 7) % 100, ", \"",
                   i % 3 == 0   ? "north, east"
                   : i % 3 == 1 ? "south?\" \"?("
                                : "sm\\303\\245\" \"land",
                   "\"},\n");
    write("ask.c", text(R"(#include <stdio.h>
#include <string.h>
)",
                        "#include \"", "net", ".h\"", R"(
static struct net_state state;
static const struct { float height, width; const char* shop; } rows[] = {
)",
                        rows, R"(};
static int place(const char* const* names, int count, const char* name) {
  for (int i = 0; i < count; ++i)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}
int main(void) {
  const int shop = place(net_columns, net_column_count, "shop");
  net_init(&state);
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    float x[net_column_count], scores[2];
    x[place(net_columns, net_column_count, "height")] = rows[i].height;
    x[place(net_columns, net_column_count, "width")] = rows[i].width;
    x[shop] = (float)place(net_words_0, 3, rows[i].shop);
    net(&state, x, scores);
    puts(net_classes[scores[1] > scores[0]]);
  }
  return 0;
}
)"));
    const std::string built = (root_ / "ask").string();
    ASSERT_EQ(std::system(text("cc -std=c99 -Wall -Wextra -pedantic -Werror -I ", root_.string(), " ", built, ".c ",
                               (root_ / "net.o").string(), " -o ", built)
                              .c_str()),
              0)
        << contents("net.h");
    ASSERT_EQ(std::system(text(command_to_run(built), " > ", built, ".txt").c_str()), 0);
    EXPECT_EQ(contents("ask.txt"), expected);
  }
}

}  // namespace
}  // namespace gradus::command::compile_command_test
