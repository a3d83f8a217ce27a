// Shows: a table from csv with words, missing cells and a rare class: categories, normalized numbers, class weights.
// Prints: how many of the defaults are found (recall) without and with class weights, and the AUC (above 0.8).
#include <gradus/gradus.h>
#include <fstream>
#include <random>
using namespace gradus;

// Loans of which one in twelve defaults: income, age, debt, home, purpose.
void write_loans(const std::filesystem::path& file, int rows) {
  std::mt19937 engine(3);
  std::normal_distribution<double> noise;
  std::ofstream out(file);
  out << "income,age,debt,home,purpose,outcome\n";
  for (int i = 0; i < rows; ++i) {
    const double income = std::exp(10.3 + 0.5 * noise(engine)), age = 20 + engine() % 50,
                 debt = std::abs(noise(engine));
    const int home = engine() % 3, purpose = engine() % 4;
    const double risk =
        1.5 * debt - 1.2 * (std::log(income) - 10.3) - 0.02 * (age - 40) + (purpose == 2) + 0.8 * (home == 1);
    out << income << ',';
    if (engine() % 20) out << age;
    out << ',' << debt << ',' << std::array{"own", "rent", "mortgage"}[home] << ','
        << std::array{"car", "house", "business", "other"}[purpose] << ','
        << (risk + 0.7 * noise(engine) > 3.6 ? "default" : "paid") << '\n';
  }
}

struct Risk {
  Normalization numbers;
  Embedding home{3, 2}, purpose{4, 2};
  Dense hidden{32, relu};
  Dropout dropout{0.2};
  Dense logit{1};
  Tensor operator()(const Tensor& row) const {
    const auto column = [&](int i) { return cast(gather(row, constant(i), 1), i32); };
    const Tensor x = concat({numbers(slice(row, {0, 0}, {-1, 3})), home(column(3)), purpose(column(4))}, 1);
    return logit(dropout(hidden(x)));
  }
};

int main() {
  const auto file = std::filesystem::temp_directory_path() / "gradus_loans.csv";
  write_loans(file, 6000);
  set_seed(1);
  const auto loans =
      data::from_csv(file, {.label = "outcome",
                            .missing_value = 45,
                            .categories = {{"home", {}}, {"purpose", {}}, {"outcome", {"paid", "default"}}}})
          .map([](Tensor row, Tensor label) { return std::pair{row, expand_dims(label, 0)}; });
  const auto train = loans.take(5000), test = loans.skip(5000).batch(500);

  // Keras's class_weight: the weight of an example is that of its class.
  const auto weighted = [&](double of_default) {
    const Tensor class_weight = constant({1.0, of_default});
    return train.map([=](Tensor row, Tensor y) { return std::tuple{row, y, gather(class_weight, y[0])}; });
  };
  const auto trained_with = [&](double weight_of_default) {
    Model<Risk> model;
    model->numbers.adapt(train.map([](Tensor row, Tensor) { return row.rows(0, 3); }));
    Adam optimizer({.learning_rate = 3e-3});
    fit(model, optimizer, BinaryCrossentropy(from_logits), weighted(weight_of_default).shuffle().batch(50),
        {.epochs = 8, .sample_weight = true, .verbose = false});
    AUC auc;
    Recall recall;
    for (auto [x, y] : test) {
      const Tensor probability = sigmoid(model(x));
      auc.update(y, probability);
      recall.update(y, probability);
    }
    print("weight", weight_of_default, "recall", recall.result(), "AUC", auc.result());
    return std::pair{recall.result(), auc.result()};
  };
  const double plain_recall = trained_with(1).first;
  const auto [recall, auc] = trained_with(8);
  check(auc > 0.85 && recall > 0.7 && recall > plain_recall + 0.2, "weights find what is rare");
}
