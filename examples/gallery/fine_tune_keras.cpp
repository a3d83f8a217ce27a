// Shows: fine-tuning: a network that Keras saved gets another head. First that alone is trained, then the rest as well,
//        but for the batch normalizations, which stay frozen.
// Prints: the accuracy on five kinds of clothes that the file knows nothing of: with the new head alone (above 0.8),
// and
//         after fine-tuning (above 0.9). data/clothes.keras was made by peers/make_clothes.py.
#include <gradus/gradus.h>
using namespace gradus;

int main(int argc, char** argv) {
  const std::filesystem::path directory = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const std::filesystem::path file = argc > 2 ? argv[2] : "examples/gallery/data/clothes.keras";
  set_seed(1);

  // Classes 5 to 9 as 0 to 4; the file was trained on the others.
  const auto clothes = [&](std::string name) {
    return data::from_idx(directory / (name + "-images-idx3-ubyte.gz"), directory / (name + "-labels-idx1-ubyte.gz"))
        .filter([](Tensor, Tensor label) { return label >= 5; })
        .map([](Tensor image, Tensor label) { return std::pair{expand_dims(cast(image, f32) / 255, -1), label - 5}; });
  };
  const auto train = clothes("train").take(4000).cache().shuffle(4000).batch(32);
  const auto test = clothes("t10k").take(1000).cache().batch(250);

  const Sequential base = load_model(file);
  std::vector<Module> layers;
  for (std::size_t i = 0; i + 1 < base.size(); ++i) layers.push_back(shared(base.layer(i)));  // the same, not copies
  Sequential body(layers);
  body.set_trainable(false);
  layers.push_back(Dense(5, linear, {.name = "new_scores"}));
  Sequential model(std::move(layers));

  const SparseCategoricalCrossentropy loss(from_logits);
  const auto accuracy = [&] {
    return evaluate(model, loss, test, {.metrics = {SparseCategoricalAccuracy()}})["sparse_categorical_accuracy"];
  };
  Adam head_optimizer({.learning_rate = 2e-2});
  fit(model, head_optimizer, loss, train, {.epochs = 4});
  const double with_new_head = accuracy();
  print(model.summary());

  body.set_trainable(true);
  for (std::size_t i = 0; i < body.size(); ++i)
    if (body.layer(i).name().starts_with("batch_normalization")) body.layer(i).set_trainable(false);
  const Tensor statistics = base.layer(1).variables()["batch_normalization/moving_mean"];
  Adam optimizer({.learning_rate = 1e-3});
  fit(model, optimizer, loss, train, {.epochs = 2});

  print("accuracy with a new head", with_new_head, "fine-tuned", accuracy());
  check(with_new_head > 0.8 && accuracy() > 0.9, "what was learnt on others is of use");
  check(bitwise_equal(statistics, body.layer(1).variables()["batch_normalization/moving_mean"]), "frozen");
}
