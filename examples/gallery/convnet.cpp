// Shows: a convolutional network of blocks with batch normalization and dropout, trained by `fit` on images from files.
// Prints: a table of the layers, and the accuracy on images that it has not seen (more than 0.86 after two epochs).
#include <gradus/gradus.h>
using namespace gradus;

class ConvBlock {
 public:
  explicit ConvBlock(int filters)
      : convolution_(filters, 3, {.padding = Padding::same, .use_bias = false}), dropout_(0.1) {}
  Tensor operator()(const Tensor& x) const { return dropout_(pool_(relu(normalization_(convolution_(x))))); }

 private:
  Conv2D convolution_;
  BatchNormalization normalization_;
  MaxPooling2D pool_;
  Dropout dropout_;
};

struct ConvNet {
  ConvBlock stem{16}, body{32};
  Flatten flatten;
  Dense hidden{64, relu}, scores{10};
  Tensor operator()(const Tensor& images) const { return scores(hidden(flatten(body(stem(images))))); }
};

int main(int argc, char** argv) {
  const std::filesystem::path directory = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const auto images_of = [&](std::string name) {
    return data::from_idx(directory / (name + "-images-idx3-ubyte.gz"), directory / (name + "-labels-idx1-ubyte.gz"))
        .map([](Tensor image, Tensor label) { return std::pair{expand_dims(cast(image, f32) / 255, -1), label}; });
  };
  set_seed(1);
  const auto train = images_of("train").take(20000).cache().shuffle().batch(64).prefetch();
  const auto test = images_of("t10k").take(2000).batch(200);

  Model<ConvNet> model;
  model.build({f32, {any_size, 28, 28, 1}});
  print(model.summary());

  Adam optimizer({.learning_rate = 2e-3});
  const SparseCategoricalCrossentropy loss(from_logits);
  fit(model, optimizer, loss, train, {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .validation = test});

  const Evaluation result = evaluate(model, loss, test, {.metrics = {SparseCategoricalAccuracy()}});
  print("test loss", result.loss, "accuracy", result["sparse_categorical_accuracy"]);
  check(result["sparse_categorical_accuracy"] > 0.86, "it tells clothes apart");
}
