// A user's program of what is hard for compilers: structs that are reflected, layers with default constructors in
// aggregates, options by name, functions traced, structured bindings of data sets.
#include <gradus/gradus.h>
using namespace gradus;

class Tower {
 public:
  explicit Tower(int units) : blocks_{Dense(units, relu), Dense(units)} {}
  Tensor operator()(const Tensor& x) const { return blocks_[1](blocks_[0](x)); }
  auto layers() const { return named_layers("blocks", blocks_); }

 private:
  std::vector<Dense> blocks_;
};

// Every layer and metric that can be made of nothing, in an aggregate without initializers.
struct Defaults {
  Flatten flatten;
  GlobalAveragePooling2D average;
  GlobalMaxPooling1D largest;
  BatchNormalization normalize;
  LayerNormalization layer_normalize;
  GroupNormalization group_normalize;
  UnitNormalization unit;
  UpSampling2D up;
  ZeroPadding2D pad;
  Cropping2D crop;
  Softmax softmax;
  LeakyReLU leaky;
  ELU elu;
  PReLU prelu;
  Masking masking;
  Attention attention;
  AdditiveAttention additive;
  ActivityRegularization penalty;
  RandomFlip flip;
  Sequential empty;
};
struct Metrics {
  AUC auc;
  Precision precision;
  Recall recall;
  BinaryIoU iou;
  TopKCategoricalAccuracy top;
};
struct Trainer {
  Adam adam;
  SGD sgd;
  MeanSquaredError loss;
};

namespace {
struct Net {
  bool deep = true;
  Conv2D convolution{4, 3};
  GlobalAveragePooling2D average;
  std::map<std::string, Dense> heads{{"mean", Dense(2)}};
  std::shared_ptr<Dense> hidden = std::make_shared<Dense>(Dense(6, tanh));
  Tower tower{5};
  Tensor operator()(const Tensor& x) const { return heads.at("mean")(tower((*hidden)(average(convolution(x))))); }
};
}  // namespace

/// True if `work` throws an E as the most derived type that the caller names.
template <class E> bool throws(const std::function<void()>& work) {
  try {
    work();
  } catch (const E&) { return true; } catch (...) {
  }
  return false;
}

struct OwnError : InvalidArgument {
  using InvalidArgument::InvalidArgument;
};

int main() {
  const Defaults defaults{}, also = {};
  const Metrics metrics{};
  Trainer trainer{};
  Model<Net> model, named({}, {.name = "named"});
  const Tensor x = random::normal({16, 6, 6, 1}, {.seed = 1}), y = random::normal({16, 2}, {.seed = 2});
  const History history = fit(model, trainer.adam, trainer.loss, data::from_tensor_slices(x, y).shuffle().batch(4),
                              {.epochs = 2, .verbose = false});
  const auto names = [&] {
    std::string all;
    for (const Variable& variable : model.variables()) all += variable.name() + " ";
    return all;
  }();
  check(names ==
            "convolution/kernel convolution/bias heads_mean/kernel heads_mean/bias hidden/kernel hidden/bias "
            "tower/blocks_0/kernel tower/blocks_0/bias tower/blocks_1/kernel tower/blocks_1/bias ",
        "fields are found and named: " + names);
  auto step = function([&](Tensor a, double scale) { return model(a) * scale; });
  check(step(x, 2).shape() == Shape{16, 2}, "a function is traced");
  for (auto [a, b] : data::from_tensor_slices(x, y).batch(8)) check(a.shape()[0] == b.shape()[0], "batches");
  check(x(all, slice(1, end), newaxis, ellipsis, -1).shape() == Shape{16, 5, 1, 6},
        "subscripts are told by their names");
  const Dropout drop(0.5);
  const double dropped = zero_fraction(drop(ones({1000}), training)).item();
  check(dropped > 0.4 && dropped < 0.6, "a layer sees that it is in training");
  {
    const DeviceScope on(cpu(0));
    check(ones({2}).device() == cpu(0), "a tensor is made on the scope's device");
  }
  check(throws<InvalidArgument>([&] { matmul(x, ones({3})); }), "an error of the library has its type");
  check(throws<OwnError>([] {
          function([](Tensor a) -> Tensor {
            throw OwnError("own");
            return a;
          })(ones({2}));
        }),
        "an error of the program passes through the library with its type");
  check(model->heads.at("mean").kernel().shape()[1] == 2, "a layer behind a handle is known by its type");
  Sequential shared_one{shared(model->heads.at("mean"))};
  check(&shared_one.layer(0).layer_behind() == &model->heads.at("mean").layer_behind(), "a shared layer is the same");
  print("right", history.loss.size(), defaults.softmax.name() == also.softmax.name());
}
