// Shows: a model of two outputs, whose losses, weights and metrics have their names; a part of the data held out for
//        validation; a training step of one's own, which fit drives.
// Prints: the loss and the metrics of each output after training, and the loss of the step of one's own before and
//         after.
#include <gradus/gradus.h>
using namespace gradus;

struct Locator {  // of a point: in which quadrant it lies, and how far from the origin
  struct Out {
    Tensor quadrant, distance;  // [batch, 4] logits, [batch, 1]
  };
  Dense hidden{32, relu}, quadrant{4}, distance{1};
  Out operator()(Tensor x) const {
    const Tensor h = hidden(x);
    return {quadrant(h), distance(h)};
  }
};

int main() {
  set_seed(0);
  const Tensor x = random::normal({1000, 2});
  const Tensor quadrant = reduce_sum(cast(x > 0, i32) * constant({2, 1}), {.axis = {1}});
  const Tensor distance = norm(x, {.axis = {1}, .keepdims = true});
  const auto dataset = data::from_tensor_slices(x, quadrant, distance).shuffle().batch(50);  // x, then y of each output

  Model<Locator> model;
  Adam optimizer({.learning_rate = 1e-2});
  const Losses losses({{"quadrant", SparseCategoricalCrossentropy(from_logits)}, {"distance", MeanSquaredError()}},
                      {.loss_weights = {{"distance", 0.5}}});
  const History history =
      fit(model, optimizer, losses, dataset,
          {.epochs = 12,
           .metrics = {{"quadrant", SparseCategoricalAccuracy()}, {"distance", MeanAbsoluteError()}},
           .validation_split = 0.2,
           .validation_freq = 3,
           .verbose = false});
  print("validation loss", history["val_loss"].back(), "of", history["val_quadrant_loss"].back(), "and",
        history["val_distance_loss"].back());
  print("accuracy", history["val_quadrant_sparse_categorical_accuracy"].back(), "error",
        history["val_distance_mean_absolute_error"].back());
  const double parts = history["val_quadrant_loss"].back() + 0.5 * history["val_distance_loss"].back();
  check(std::abs(history["val_loss"].back() - parts) < 1e-5, "the loss is the weighted sum");
  check(history["val_quadrant_sparse_categorical_accuracy"].back() > 0.9, "it reads the quadrant");

  // A step of one's own: the same loss at points beside those of the data, which have no labels.
  Adam careful({.learning_rate = 1e-3});
  const auto step = [&](Tensor points, Tensor labels, Tensor distances) {
    GradientTape tape;
    const auto [scores, lengths] = model(points);
    const auto [beside, unused] = model(points + random::normal(points.shape(), {.stddev = 0.05}));
    const Loss known = SparseCategoricalCrossentropy(from_logits)(labels, scores);
    const Loss agree = Loss::mean(mean_squared_error(softmax(scores), softmax(beside)));
    const Loss loss = known + MeanSquaredError()(distances, lengths) + agree;
    careful.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return Logs{{"loss", loss}, {"agreement", agree}};
  };
  const History own = fit(model, careful, step, dataset, {.epochs = 5, .verbose = false});
  print("step of one's own", own.loss.front(), "->", own.loss.back(), "agreement", own["agreement"].back());
  check(own.loss.back() < own.loss.front(), "it learns");
}
