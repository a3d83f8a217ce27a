/// summary() is a table whatever stands in it, and messages name models that have no name.
#include <gtest/gtest.h>
#include <sstream>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace summary_test {
using namespace gradus;

/// Each row has four cells, two blanks or more apart where they are one word each.
std::vector<std::vector<std::string>> cells_of(const std::string& summary) {
  std::istringstream lines(summary);
  std::vector<std::vector<std::string>> rows;
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Model: ")) continue;
    if (line.starts_with("parameters: ")) break;
    if (width == 0) width = line.size();
    EXPECT_EQ(line.size(), width) << summary;
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; words >> word;) rows.back().push_back(word);
  }
  return rows;
}

TEST(Summary, ColumnsAreAsWideAsWhatStandsInThem) {
  Sequential model{Dense(3000000, relu, {.name = "a_very_long_name_of_a_layer_that_goes_on"}), Dense(2)};
  model.build({f32, {any_size, 1000}});
  const auto rows = cells_of(model.summary());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"a_very_long_name_of_a_layer_that_goes_on", "(dense)", "(?,", "3000000)",
                                               "3003000000", "12012000000"}));
}

struct Net {
  MultiHeadAttention heads{2, 4};
  Attention dot;
  AdditiveAttention additive;
  Bidirectional sequence{LSTM(3)};
  Dense out{2};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = heads(x, x, x);
    return out(sequence(additive(dot(y, x), x)));
  }
};

TEST(Summary, LayersOfSeveralInputsHaveAnOutput) {
  Model<Net> model;
  EXPECT_NE(model.summary().find("not built"), std::string::npos);
  model(ones({2, 3, 4}));
  const std::string summary = model.summary();
  EXPECT_EQ(summary.find("not built"), std::string::npos) << summary;
  EXPECT_NE(summary.find("heads (multi_head_attention)    (2, 3, 4)"), std::string::npos) << summary;
  EXPECT_NE(summary.find("dot (attention)                 (2, 3, 4)"), std::string::npos) << summary;
  Model<Net> open;
  open.build({f32, {any_size, any_size, 4}});
  EXPECT_NE(open.summary().find("dot (attention)                 (?, ?, 4)"), std::string::npos) << open.summary();
}

struct Two {
  Dense left{2}, right{2};
  Tensor operator()(const Tensor& a, const Tensor& b) const { return left(a) + right(b); }
};
struct Outer {
  Model<Two> two;
  Tensor operator()(const Tensor& x) const { return two(x, x); }
};
TEST(Summary, AModelOfSeveralInputsIsBuilt) {
  Model<Outer> model;
  model(ones({2, 3}));
  EXPECT_EQ(model.summary().find("not built"), std::string::npos) << model.summary();
}

TEST(Messages, NameWhatHasNoName) {
  const EmptyTestDirectory folder;
  const auto file = folder.path() / "weights";
  Sequential sequential{Dense(3)};
  const Dense dense(2);
  Sequential holder{shared(dense)};
  Model<Two> model;
  const auto missing = [](const auto& module) {
    return error_of<InvalidArgument>([&] {
      const Variables variables = module.trainable_variables();
      (void)variables.size();
    });
  };
  expect_says(missing(sequential), "module sequential has no variables yet");
  expect_says(missing(dense), "module dense has no variables yet");
  save_npz(file, {{"a", ones({2})}});
  expect_says(error_of<InvalidArgument>([&] { load_npz(file, sequential); }), "module sequential is not built");
  expect_says(error_of<InvalidArgument>([&] { load_npz(file, model); }), "Model<summary_test::Two> is not built");
  expect_says(error_of<InvalidArgument>([&] { save_weights(folder.path() / "a.weights.h5", model); }),
              "Model<summary_test::Two> is not built");
  expect_says(error_of<InvalidArgument>([&] { save_model(folder.path() / "a.keras", sequential); }),
              "module sequential is not built");
  expect_says(error_of<InvalidArgument>([&] { low_rank(sequential, {.rank = 1}); }), "sequential is not built");
}

}  // namespace summary_test
