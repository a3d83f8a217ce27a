/// Every kind of data from training to prediction, what is wrong with its files, and what inspect says.
#include <cmath>
#include <set>
#include <nlohmann/json.hpp>
#include "apps/gradus/experiment.h"
#include "apps/gradus/findings.h"
#include "gradus/gradus.h"
#include "gradus/onnx/export.h"
#include "tests/apps/command_fixture.h"
#include "tests/number_in.h"
#include "tests/errors.h"

namespace gradus::command::data_kinds_test {
namespace {
namespace fs = std::filesystem;

class DataKinds : public CommandTest {
 protected:
  void configure(const std::string& data, const std::string& layers, const std::string& more = "") const {
    write("config.toml", "[data]\n" + data + layers +
                             "[optimizer]\nlearning_rate = 0.05\n[train]\nepochs = 20\nbatch_size = 16\n" + more);
  }
  TrainArguments arguments() const { return {.config = root_ / "config.toml", .output = root_ / "run", .quiet = true}; }
  int trained() {
    return status_of([&] { return train(arguments()); });
  }
  int predicted(const fs::path& input, PredictArguments more = {}) {
    more.run = root_ / "run";
    more.input = input;
    return status_of([&] { return predict_examples(more); });
  }
  /// The rows below the head.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream in(output_);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  double number_after(const std::string& words) const {
    const std::size_t at = output_.find(words);
    return at == std::string::npos ? std::nan("") : number_in(std::string_view(output_).substr(at + words.size()));
  }
};

constexpr const char* dense_classes =
    "[[layers]]\ntype = \"normalization\"\n[[layers]]\ntype = \"dense\"\nunits = 8\nactivation = \"relu\"\n"
    "[[layers]]\ntype = \"scores\"\n";

/// The kind follows from the width; the shop says nothing.
std::string table(int rows, bool with_kind) {
  std::string text = with_kind ? "shop,width,height,kind\n" : "height,width,note,shop\n";
  for (int i = 0; i < rows; ++i) {
    const int width = 1000 + (i * 7) % 100;
    const std::string shop = i % 2 ? "\"north, east\"" : "south", height = i % 5 ? std::to_string(i % 9) : "NA";
    const char* kind = width < 1050 ? "slim" : "wide";
    text += with_kind ? gradus::text(shop, ',', width, ',', height, ',', kind, '\n')
                      : gradus::text(height, ',', width, ",left out,", shop, '\n');
  }
  return text;
}

TEST_F(DataKinds, TablesOfWordsAndNumbers) {
  write("data.csv", table(200, true));
  configure(
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\nmissing_value = 4\n",
      dense_classes);
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_GT(number_after("test accuracy "), 0.9) << output_;
  const std::string said = output_.substr(0, output_.find(','));
  ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
  EXPECT_EQ(output_.substr(0, output_.find(',')), said);
  EXPECT_EQ(read_facts(root_ / "run/data.json").classes, (std::vector<std::string>{"slim", "wide"}));

  // Columns in another order, one too many, and no label.
  write("new.csv", table(30, false));
  ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
  ASSERT_EQ(lines().size(), 31u);
  EXPECT_EQ(lines()[0], "row,class,probability");
  EXPECT_TRUE(lines()[1].starts_with("0,slim,")) << lines()[1];     // 1000
  EXPECT_TRUE(lines()[15].starts_with("14,wide,")) << lines()[15];  // 1098
  write("bad.csv", "height,width,shop\n1,2,west\n");
  EXPECT_EQ(predicted(root_ / "bad.csv"), bad_data);
  expect_error("bad.csv:2: column `shop`");
  write("short.csv", "height,width\n1,2\n");
  EXPECT_EQ(predicted(root_ / "short.csv"), bad_data);
  expect_error("has no column `shop`");
  expect_error("known are `height`, `width`");
  const std::string report = contents(root_ / "run/report.html");
  EXPECT_NE(report.find("class=\"confusion\""), std::string::npos);
  EXPECT_NE(report.find("width = 10"), std::string::npos);  // of a worst example
}

/// The kind follows from the shop alone, whose words are in no order: a model of one layer cannot tell by their
/// numbers.
TEST_F(DataKinds, WordsAreEncodedAsOneHotRowsOrEmbeddings) {
  const std::vector<std::string> shops{"east", "north", "south", "west", "centre"};
  std::string text = "size,shop,kind\n", asked = "shop,size\n";
  for (int i = 0; i < 200; ++i)
    text += gradus::text(1000 + i % 7, ',', i % 41 == 40 ? "NA" : shops[static_cast<std::size_t>(i) % 5], ',',
                         i % 41 == 40 || i % 5 % 2 == 0 ? "even" : "odd", '\n');
  for (const std::string& shop : shops) asked += shop + ",1003\n";
  write("data.csv", text);
  write("new.csv", asked);
  const std::string layers = "[[layers]]\ntype = \"normalization\"\n[[layers]]\ntype = \"scores\"\n";
  const std::string data =
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\nmissing_value = 0\n";
  for (const std::string keys :
       {"category_encoding = \"one_hot\"\n", "category_encoding = \"embedding\"\ncategory_width = 3\n"}) {
    SCOPED_TRACE(keys);
    fs::remove_all(root_ / "run");
    configure(data + keys, layers);
    ASSERT_EQ(trained(), ok) << errors_;
    EXPECT_EQ(errors_.find("takes for quantities"), std::string::npos) << errors_;
    EXPECT_GT(number_after("test accuracy "), 0.95) << output_;
    ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
    for (std::size_t i = 0; i < shops.size(); ++i)
      EXPECT_TRUE(lines()[i + 1].starts_with(gradus::text(i, i % 2 == 0 ? ",even," : ",odd,"))) << lines()[i + 1];
    write("bad.csv", "shop,size\nnowhere,1\n");
    EXPECT_EQ(predicted(root_ / "bad.csv"), bad_data);
    expect_error("bad.csv:2: column `shop`");
    ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
  }
  configure(data + "category_encoding = \"letters\"\n", layers);
  EXPECT_EQ(trained(), usage);
  expect_error("category_encoding");
}

TEST_F(DataKinds, ChosenColumnsOfATable) {
  std::string text = "id,x,noise,shop,y,w\n";
  for (int i = 0; i < 200; ++i)
    text += gradus::text("row", i, ',', i % 20, ",word,", i % 2 ? "east" : "west", ',', i % 20 >= 10 ? "high" : "low",
                         ",1\n");
  write("data.csv", text);
  const std::string data =
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"y\"\nsample_weight = \"w\"\ncategories = [\"shop\", \"y\"]\n";
  configure(data + "columns = [\"shop\", \"x\"]\n", dense_classes);
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"shop", "x"}));
  EXPECT_GT(number_after("test accuracy "), 0.8) << output_;
  write("new.csv", "x,shop\n3,east\n");
  ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
  for (const auto& [columns, message] : {std::pair{"[\"x\", \"y\", \"shop\"]", "y, which is the label"},
                                         {"[\"x\", \"w\", \"shop\"]", "w, which is the sample_weight"},
                                         {"[\"x\", \"x\", \"shop\"]", "x twice"},
                                         {"[\"x\"]", "shop, which is not among data.columns"}}) {
    configure(data + "columns = " + columns + "\n", dense_classes);
    EXPECT_NE(trained(), ok) << columns;
    expect_error(message);
  }
  std::filesystem::remove_all(root_ / "run");
  configure(data + "columns = [\"shop\", \"xx\"]\n", dense_classes);
  EXPECT_NE(trained(), ok);
  expect_error("xx");
}

TEST_F(DataKinds, NumbersArePredictedToo) {
  std::string text = "x,y\n";
  for (int i = 0; i < 200; ++i) text += gradus::text(i, ',', 0.5 * i + 0.25, '\n');
  write("data.csv", text);
  configure("kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"y\"\n",
            "[[layers]]\ntype = \"normalization\"\n[[layers]]\ntype = \"dense\"\nunits = 1\n", "loss = \"huber\"\n");
  ASSERT_EQ(status_of([&] {
              TrainArguments a = arguments();
              a.settings = {"optimizer.learning_rate=0.5", "train.epochs=100"};
              return train(a);
            }),
            ok)
      << errors_;
  EXPECT_LT(number_after("test mean absolute error "), 1) << output_;
  write("new.csv", "x\n100\n");
  ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
  EXPECT_EQ(lines()[0], "row,prediction");
  EXPECT_NEAR(number_in(lines()[1].substr(2)), 50.25, 1);
  write("config.toml", contents(root_ / "config.toml") + "\n");
  TrainArguments wrong = arguments();
  wrong.output = root_ / "wrong";
  wrong.settings = {"train.loss=sparse_categorical_crossentropy"};
  EXPECT_EQ(status_of([&] { return train(wrong); }), usage);
  expect_error("the labels are numbers");
}

TEST_F(DataKinds, ImagesByFolder) {
  for (int i = 0; i < 40; ++i) {
    const bool bright = i % 2;
    const Tensor image = full({6, 6, 3}, (bright ? 180 : 20) + i, u8);
    fs::create_directories(root_ / "pictures" / (bright ? "bright" : "dark"));
    save_png(root_ / "pictures" / (bright ? "bright" : "dark") / gradus::text(i, ".png"), image);
  }
  configure("kind = \"images\"\ntrain = \"pictures\"\nheight = 6\nwidth = 6\ntest_share = 0.25\nmean = 0.5\n",
            "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"scores\"\n");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_EQ(number_after("test accuracy "), 1) << output_;
  EXPECT_NE(contents(root_ / "run/report.html").find("src=\"data:image/png;base64,iVBOR"), std::string::npos);
  ASSERT_EQ(predicted(root_ / "pictures/dark/0.png"), ok) << errors_;
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_TRUE(lines()[1].starts_with((root_ / "pictures/dark/0.png").string() + ",dark,0.")) << lines()[1];
  const PredictArguments to_file{.output = root_ / "out.npy"};
  ASSERT_EQ(predicted(root_ / "pictures", to_file), ok) << errors_;
  const Tensor shares = load_npy(root_ / "out.npy");
  EXPECT_EQ(shares.spec(), (Spec{f32, {40, 2}}));
  EXPECT_NEAR(reduce_sum(shares).item(), 40, 1e-4);
  save_npy(root_ / "none.npy", zeros({0, 3}));
  EXPECT_EQ(predicted(root_ / "none.npy"), bad_data);  // no image
  write("pictures/dark/broken.png", "no picture");
  EXPECT_EQ(predicted(root_ / "pictures/dark/broken.png"), bad_data);
  expect_error("broken.png");
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(predicted(root_ / "empty"), failed);
}

TEST_F(DataKinds, ArraysOfAnArchive) {
  set_seed(1);
  const Tensor x = random::normal({120, 3}), y = cast(argmax(x), i64);
  save_npz(root_ / "data.npz", {{"x_train", cast(x, f64)}, {"y_train", expand_dims(y, -1)}, {"other", x}});
  configure("kind = \"npz\"\nfile = \"data.npz\"\n", "[[layers]]\ntype = \"dense\"\nunits = 3\n");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_GT(number_after("test accuracy "), 0.8) << output_;
  ASSERT_EQ(predicted(root_ / "data.npz", {.array = "other"}), ok) << errors_;
  EXPECT_EQ(lines().size(), 121u);
  EXPECT_EQ(predicted(root_ / "data.npz", {.array = "othr"}), bad_data);
  expect_error("did you mean `other`?");
  save_npy(root_ / "none.npy", zeros({0, 3}));
  ASSERT_EQ(predicted(root_ / "none.npy"), ok) << errors_;
  EXPECT_EQ(output_, "row,class,probability\n");
  save_npy(root_ / "many.npy", concat({x, x, x}));
  ASSERT_EQ(predicted(root_ / "many.npy"), ok) << errors_;
  ASSERT_EQ(lines().size(), 361u);
  EXPECT_EQ(lines()[1].substr(1), lines()[361 - 120].substr(3));  // the same example in another part
  save_npy(root_ / "scalar.npy", constant(3.0f));
  EXPECT_EQ(predicted(root_ / "scalar.npy"), bad_data);
  save_npy(root_ / "wide.npy", zeros({2, 4}));
  EXPECT_EQ(predicted(root_ / "wide.npy"), bad_data);
  expect_error("the model was trained on f32[?,3]");
  configure("kind = \"npz\"\nfile = \"data.npz\"\ntrain_x = \"x\"\n", "[[layers]]\ntype = \"scores\"\n");
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "b", .quiet = true}); }),
            bad_data);
  expect_error("there is no array `x`");
}

/// What is no class of the model is found before the training, where it stands.
TEST_F(DataKinds, LabelsOutsideOfTheClassesHaveAPlace) {
  const auto fails = [&](const std::string& data) {
    configure(data, "[[layers]]\ntype = \"dense\"\nunits = 3\n");
    EXPECT_EQ(trained(), bad_data);
  };
  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i) text += gradus::text("\"", i, "\",", i == 20 ? 3 : i % 3, "\n\n");
  write("data.csv", text);
  fails("kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"y\"\n");
  expect_error("data.csv:42: column `y`: the label 3 is none of the classes 0 to 2");
  const std::vector<std::int32_t> classes{0, 1, 2, 0, 1, -1, 0, 1, 2, 0, 1, 2};
  const Tensor x = zeros({12, 2}), y = from_values(classes, {12});
  save_npz(root_ / "data.npz", {{"x_train", x}, {"y_train", y}, {"x", x}, {"y", y.rows(0, 5)}});
  fails("kind = \"npz\"\nfile = \"data.npz\"\n");
  expect_error("data.npz, y_train: row 5: the label -1 is none of");
  fails("kind = \"npz\"\nfile = \"data.npz\"\ntrain_x = \"x\"\ntrain_y = \"y\"\n");
  expect_error("data.npz, x has 12 rows, y has 5");
}

TEST_F(DataKinds, TheShareForTestingIsTheSameInEveryRun) {
  write("data.csv", table(100, true));
  configure(
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\nmissing_value = "
      "4\ntest_share = 0.3\n",
      dense_classes);
  const DataConfig config = read_config(root_ / "config.toml").data;
  set_seed(1);
  const Data one = load_data(config);
  set_seed(2);
  const Data other = load_data(config);
  EXPECT_EQ(one.test.examples, 30);
  EXPECT_EQ(one.train.examples, 70);
  const auto widths = [](const Dataset<2>& d) {
    std::multiset<float> all;
    for (const auto& [x, y] : d) all.insert(x.to_vector<float>()[1]);
    return all;
  };
  EXPECT_EQ(widths(one.test.raw), widths(other.test.raw));
  std::multiset<float> together = widths(one.train.raw);
  together.merge(widths(one.test.raw));
  EXPECT_EQ(together, widths(data::from_csv(root_ / "data.csv", csv_options(config, {}))));
}

TEST_F(DataKinds, ACacheKeepsWhatEachEpochValidates) {
  for (int i = 0; i < 12; ++i) {
    fs::create_directories(root_ / "pictures" / (i % 2 ? "bright" : "dark"));
    save_png(root_ / "pictures" / (i % 2 ? "bright" : "dark") / gradus::text(i, ".png"), full({6, 6, 3}, 20 * i, u8));
  }
  configure("kind = \"images\"\ntrain = \"pictures\"\nheight = 6\nwidth = 6\ntest_share = 0.25\ncache = true\n",
            "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"scores\"\n", "validate_each_epoch = true\n");
  const TrainConfig config = read_config(root_ / "config.toml");
  const Experiment experiment = make_experiment(config, load_data(config.data));
  const auto sums = [&] {
    std::vector<double> all;
    for (const auto& [x, y] : experiment.options.validation.value().as<2>()) all.push_back(reduce_sum(x).item());
    return all;
  };
  const std::vector<double> first = sums();
  EXPECT_FALSE(first.empty());
  fs::remove_all(root_ / "pictures");
  EXPECT_EQ(sums(), first);
}

TEST_F(DataKinds, FindingsCountEveryTestExample) {
  write("data.csv", table(100, true));
  configure(
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\nmissing_value = "
      "4\ntest_share = 0.3\n",
      "[[layers]]\ntype = \"scores\"\n");
  const TrainConfig config = read_config(root_ / "config.toml");
  const Data data = load_data(config.data);
  const Experiment experiment = make_experiment(config, data);
  // Scores that say: always the first class.
  for (Variable& v : experiment.model.variables())
    v.assign(v.name().ends_with("bias") ? from_values(std::vector<float>{1, 0}, {2}) : zeros_like(v));
  const Findings findings = examine(experiment.model, data, config.data);
  std::int64_t slim = 0;
  for (const auto& [x, y] : data.test.raw) slim += y.item() == 0;
  EXPECT_EQ(findings.confusion, (std::vector<std::vector<std::int64_t>>{{slim, 0}, {30 - slim, 0}}));
  ASSERT_EQ(findings.worst.size(), 18u);
  EXPECT_EQ(findings.worst[0].truth, "wide");
  EXPECT_EQ(findings.worst[0].prediction, "slim");
  EXPECT_NEAR(findings.worst[0].loss, std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(findings.worst[0].probability, 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_LT(findings.worst[0].index, findings.worst[1].index);  // of equal losses
}

/// Latin-1, as many tables are: whatever the bytes of a word, the run knows it again.
TEST_F(DataKinds, WordsNeedNotBeUtf8) {
  const std::vector<std::string> words{
      "gr\xFC"
      "n",
      "\xEE\xBE\x80", "\xEE\xBE", "\xC3\xBC", "\xF0\x9F\x98\x80\xF0"};
  DataFacts facts{
      .input = {f32, {any_size, 1}}, .classes = words, .columns = {"wei\xDF"}, .categories = {{"k", words}}};
  write("data.json", to_json(facts));
  const DataFacts read = read_facts(root_ / "data.json");
  EXPECT_EQ(read.classes, facts.classes);
  EXPECT_EQ(read.columns, facts.columns);
  EXPECT_EQ(read.categories, facts.categories);
  std::string text =
      "gr\xF6\xDF"
      "e,farbe\n";
  for (int i = 0; i < 40; ++i) text += gradus::text(i, i < 20 ? ",gr\xFCn\n" : ",blau\n");
  write("data.csv", text);
  configure("kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"farbe\"\ncategories = [\"farbe\"]\n", dense_classes);
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
  EXPECT_EQ(status_of([&] { return train({.config = {}, .resume = root_ / "run", .quiet = true}); }), ok) << errors_;
  ASSERT_EQ(predicted(root_ / "data.csv"), ok) << errors_;
  EXPECT_TRUE(lines()[1].starts_with("0,gr\xFCn,")) << lines()[1];
  EXPECT_EQ(status_of([&] { return inspect({.path = root_ / "run", .json = true}); }), ok) << errors_;
}

/// Every second row says the contrary and counts nothing.
TEST_F(DataKinds, ExamplesCountAsMuchAsTheirColumnSays) {
  std::string text = "width,trust,kind\n";
  for (int i = 0; i < 200; ++i) {
    const int width = (i * 7) % 100;
    const bool wide = (width >= 50) != (i % 2 == 1);
    text += gradus::text(width, ',', i % 2 ? 0 : 2, ',', wide ? "wide" : "slim", '\n');
  }
  write("data.csv", text);
  const std::string data =
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\"]\nsample_weight = \"trust\"\n";
  configure(data, dense_classes, "validate_each_epoch = true\n");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"width"}));
  const std::string said = output_.substr(0, output_.find(','));
  ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
  EXPECT_EQ(output_.substr(0, output_.find(',')), said);
  write("new.csv", "width\n3\n95\n");
  ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
  EXPECT_TRUE(lines()[1].starts_with("0,slim,")) << output_;
  EXPECT_TRUE(lines()[2].starts_with("1,wide,")) << output_;

  const TrainConfig config = read_config(root_ / "config.toml");
  const Data examples = load_data(config.data);
  std::int64_t seen = 0;
  for (const auto& [x, y, weight] : examples.train.weighted.value()) {
    const bool wide = x.item() >= 50, says_wide = y.item() == 1;
    EXPECT_EQ(weight.item(), wide == says_wide ? 2 : 0) << "weights stay with their examples";
    ++seen;
  }
  EXPECT_EQ(seen, examples.train.examples);

  write("data.csv", "width,trust,kind\n1,-2,slim\n2,1,wide\n");
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "other"}); }), bad_data);
  expect_error("data.csv:2: column `trust`: a weight of -2");
  write("data.csv", "width,trust,kind\n1,1,\"sl\nim\"\n\n2,inf,wide\n");
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "other"}); }), bad_data);
  expect_error("data.csv:5: column `trust`: a weight of inf");
  configure(data + "header = true\n", dense_classes);
  write("data.csv", "width,trusts,kind\n1,-2,slim\n2,1,wide\n");
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "third"}); }), bad_data);
  expect_error("no column `trust` for sample_weight; did you mean `trusts`?");
}

TEST_F(DataKinds, ClassesCountAsMuchAsIsSaid) {
  write("data.csv", table(200, true));
  const std::string data =
      "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\nmissing_value = 4\n";
  configure(data, dense_classes, "class_weight = [1, 0]\n");
  ASSERT_EQ(trained(), ok) << errors_;
  write("new.csv", table(30, false));
  ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
  for (std::size_t i = 1; i < lines().size(); ++i)
    EXPECT_NE(lines()[i].find(",slim,"), std::string::npos) << "nothing speaks for the other one: " << lines()[i];
  configure(data, dense_classes, "class_weight = [1, 0, 2]\n");
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "other"}); }), usage);
  expect_error("train.class_weight has 3 numbers; expected one for each of the 2 classes");
}

TEST_F(DataKinds, GroupsAndPenaltiesReachTheTraining) {
  write("data.csv", table(100, true));
  const TrainConfig config = parse_config(
      "[data]\nkind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"kind\"\ncategories = [\"kind\", \"shop\"]\n"
      "missing_value = 4\ndirectory = \"" +
          root_.string() +
          "\"\n"
          "[[layers]]\ntype = \"dense\"\nunits = 4\nkernel_regularizer = { l2 = 0.5 }\nactivity_regularizer = { l1 = 1 "
          "}\n"
          "[[layers]]\ntype = \"scores\"\n[[optimizer.groups]]\nvariables = [\"dense_1/\"]\nlearning_rate = 0\n",
      "test.toml");
  const Data data = load_data(config.data);
  Experiment experiment = make_experiment(config, data);
  const Tensor kernel = experiment.model.variables()[0], held = experiment.model.variables()[2];
  EXPECT_NEAR(experiment.model.layer_behind().penalties().at(0).item(), 0.5 * reduce_sum(square(kernel)).item(), 1e-5);
  experiment.options.verbose = false;
  fit(experiment.model, experiment.optimizer, experiment.loss, std::get<Dataset<2>>(experiment.train),
      experiment.options);
  EXPECT_TRUE(bitwise_equal(experiment.model.variables()["dense_1/kernel"].value(), held));
  EXPECT_FALSE(bitwise_equal(experiment.model.variables()["dense/kernel"].value(), kernel));

  TrainConfig wrong = config;
  wrong.optimizer.groups[0].variables = {"nothing"};
  expect_says(error_of<ConfigError>([&] { make_experiment(wrong, data); }),
              "optimizer.groups[0]: no variable of the model");
}

TEST_F(DataKinds, ATrialWritesNothing) {
  write_images("train", 64, 8);
  write_images("test", 16, 8);
  write("config.toml",
        std::string(idx_data) +
            "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n[train]\nbatch_size = 8\n");
  TrainArguments trial = arguments();
  trial.fast_dev_run = 2;
  EXPECT_EQ(status_of([&] { return train(trial); }), ok) << errors_;
  expect_output("trial of 2 steps: loss ");
  trial.json = true;
  EXPECT_EQ(status_of([&] { return train(trial); }), ok) << errors_;
  const auto said = nlohmann::json::parse(output_);
  EXPECT_EQ(said["trial_steps"], 2);
  EXPECT_TRUE(said["loss"].is_number()) << output_;
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(DataKinds, InspectSaysWhatThereIs) {
  write_images("train", 64, 8);
  write_images("test", 16, 8);
  write("config.toml",
        std::string(idx_data) +
            "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n[train]\nbatch_size = 8\n");
  ASSERT_EQ(trained(), ok) << errors_;
  const auto inspected = [&](const fs::path& path, bool graph = false) {
    EXPECT_EQ(status_of([&] { return inspect({.path = path, .graph = graph}); }), ok) << errors_;
    const std::string plain = output_;
    EXPECT_FALSE(plain.empty());
    EXPECT_EQ(status_of([&] { return inspect({.path = path, .graph = graph, .json = true}); }), ok) << errors_;
    return nlohmann::json::parse(output_);
  };
  const auto run = inspected(root_ / "run", true);
  EXPECT_EQ(run["kind"], "run");
  EXPECT_EQ(run["parameters"], 64 * 4 + 4);
  EXPECT_NE(run["summary"].get<std::string>().find("dense"), std::string::npos);
  EXPECT_NO_THROW(parse_graph(run["graph"].get<std::string>()));
  EXPECT_NE(run["graph"].get<std::string>().find("matmul"), std::string::npos) << run["graph"];
  EXPECT_EQ(run["checkpoint"]["step"], 8);
  EXPECT_EQ(run["last epoch"]["epoch"], 0);
  const auto checkpoint = inspected(root_ / "run/checkpoints");
  EXPECT_EQ(checkpoint["step"], 8);
  EXPECT_EQ(checkpoint["epoch"], 1);
  EXPECT_GT(checkpoint["arrays"].size(), 4u);  // weights and slots
  const auto weights = inspected(root_ / "run/weights.safetensors");
  EXPECT_EQ(weights["elements"], 64 * 4 + 4);
  EXPECT_EQ(weights["bytes"], 4 * (64 * 4 + 4));
  EXPECT_EQ(inspected(root_ / "config.toml")["parameters"], 64 * 4 + 4);
  export_onnx(root_ / "model.onnx", [](auto in) { return Tensors{matmul(in[0], constant({{2.0f}, {3.0f}}))}; },
              {{f32, {1, 2}}});
  const auto onnx = inspected(root_ / "model.onnx", true);
  EXPECT_EQ(onnx["inputs"][0]["shape"], (std::vector<int>{1, 2}));
  EXPECT_GE(onnx["graph"].size(), 1u);
  EXPECT_EQ(status_of([&] { return inspect({.path = root_ / "train_images"}); }), failed);
  EXPECT_EQ(status_of([&] { return inspect({.path = root_ / "nowhere"}); }), failed);
  fs::resize_file(root_ / "run/weights.safetensors", 20);
  EXPECT_EQ(status_of([&] { return inspect({.path = root_ / "run/weights.safetensors"}); }), bad_data);
}

/// Whole numbers are what the loss, or the key `task`, says; else classes.
TEST_F(DataKinds, TheTaskDecidesWhatWholeNumbersAre) {
  std::string text = "x,y\n";
  for (int i = 0; i < 120; ++i) text += gradus::text(i, ',', 2 * i + 3, '\n');
  write("data.csv", text);
  const std::string data = "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"y\"\n";
  const std::string layers = "[[layers]]\ntype = \"normalization\"\n[[layers]]\ntype = \"dense\"\nunits = 1\n";
  for (const std::string said :
       {"loss = \"mean_squared_error\"\n", "loss = \"mean_absolute_error\"\n", "loss = \"huber\"\n",
        "task = \"regression\"\n", "task = \"regression\"\nloss = \"mean_absolute_error\"\n"}) {
    SCOPED_TRACE(said);
    fs::remove_all(root_ / "run");
    configure(data, layers, said);
    ASSERT_EQ(trained(), ok) << errors_;
    EXPECT_TRUE(output_.starts_with("test mean absolute error ")) << output_;
    const std::string result = output_.substr(0, output_.find(','));
    EXPECT_FALSE(read_facts(root_ / "run/data.json").of_classes);
    ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
    EXPECT_EQ(output_.substr(0, output_.find(',')), result);
    write("new.csv", "x\n100\n");
    ASSERT_EQ(predicted(root_ / "new.csv"), ok) << errors_;
    EXPECT_EQ(lines()[0], "row,prediction");
    EXPECT_EQ(contents(root_ / "run/report.html").find("class=\"confusion\""), std::string::npos);
    const auto resumed = [&] { return train({.resume = root_ / "run", .epochs = 21, .quiet = true}); };
    ASSERT_EQ(status_of(resumed), ok) << errors_;
    EXPECT_TRUE(output_.starts_with("test mean absolute error ")) << output_;
  }
}

TEST_F(DataKinds, TheTaskOfOtherKinds) {
  set_seed(1);
  const Tensor x = random::normal({120, 3});
  save_npz(root_ / "data.npz",
           {{"x_train", x}, {"y_train", cast(argmax(x), i64)}, {"as_floats", cast(argmax(x), f32)}});
  const std::string arrays = "kind = \"npz\"\nfile = \"data.npz\"\n", one = "[[layers]]\ntype = \"dense\"\nunits = 1\n";
  configure(arrays, one, "task = \"regression\"\n");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_TRUE(output_.starts_with("test mean absolute error ")) << output_;
  // Whole numbers in floats are classes where that is said.
  fs::remove_all(root_ / "run");
  configure(arrays + "train_y = \"as_floats\"\n", "[[layers]]\ntype = \"dense\"\nunits = 3\n",
            "task = \"classification\"\n");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_GT(number_after("test accuracy "), 0.8) << output_;

  write_images("train", 60, 4);
  write_images("test", 20, 4);
  write("config.toml",
        std::string(idx_data) + "[[layers]]\ntype = \"flatten\"\n" + one + "[train]\ntask = \"regression\"\n");
  fs::remove_all(root_ / "run");
  ASSERT_EQ(trained(), ok) << errors_;
  EXPECT_TRUE(output_.starts_with("test mean absolute error ")) << output_;
  ASSERT_EQ(predicted(root_ / "test_images"), ok) << errors_;
  EXPECT_EQ(lines()[0], "row,prediction");
}

TEST_F(DataKinds, ContradictionsAboutTheTask) {
  write("data.csv", "x,y\n1,2\n2,0.5\n3,1\n4,2\n");
  const std::string data = "kind = \"csv\"\ntrain = \"data.csv\"\nlabel = \"y\"\ntest_share = 0.5\n";
  const std::string layer = "[[layers]]\ntype = \"dense\"\nunits = 3\n";
  const auto refused = [&](const std::string& d, const std::string& train, const std::string& why) {
    configure(d, layer, train);
    EXPECT_EQ(trained(), usage) << train;
    expect_error(why);
  };
  refused(data, "task = \"classification\"\n", "data.csv:3: column `y`: the label 0.5 is no class");
  refused(data, "task = \"classification\"\nloss = \"huber\"\n",
          "`train.task` is classification, but train.loss, huber");
  refused(data, "task = \"regression\"\nloss = \"sparse_categorical_crossentropy\"\n", "`train.task` is regression");
  refused(data, "task = \"regressoin\"\n", "did you mean `regression`?");
  refused(data, "task = \"regression\"\nclass_weight = [1, 2]\n", "class_weight");
  refused(data, "class_weight = [0, 0, 0]\n", "0 for every class");
  refused(data + "categories = [\"y\"]\n", "loss = \"huber\"\n", "data.categories");
  write("text.txt", std::string(500, 'a'));
  refused("kind = \"text\"\ntext = \"text.txt\"\n", "task = \"regression\"\n", "has classes alone");
}

}  // namespace
}  // namespace gradus::command::data_kinds_test
