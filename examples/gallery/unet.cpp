// Shows: a U-Net (Ronneberger et al. 2015) of nested blocks that finds the discs in noisy images.
// Prints: the loss, and the intersection over union of the discs in images that it has not seen (above 0.9).
#include <gradus/gradus.h>
using namespace gradus;

class ConvBlock {
 public:
  explicit ConvBlock(int filters)
      : first_(filters, 3, {.padding = Padding::same, .activation = relu}),
        second_(filters, 3, {.padding = Padding::same, .activation = relu}) {}
  Tensor operator()(const Tensor& x) const { return normalization_(second_(first_(x))); }

 private:
  Conv2D first_, second_;
  BatchNormalization normalization_;
};

class Up {
 public:
  explicit Up(int filters) : widen_(filters, 2, {.strides = 2, .padding = Padding::same}), block_(filters) {}
  Tensor operator()(const Tensor& x, const Tensor& skip) const { return block_(join_(widen_(x), skip)); }

 private:
  Conv2DTranspose widen_;
  Concatenate join_;
  ConvBlock block_;
};

class UNet {
 public:
  explicit UNet(int filters)
      : down1_(filters), down2_(2 * filters), bottom_(4 * filters), up2_(2 * filters), up1_(filters) {}
  Tensor operator()(const Tensor& x) const {  // [batch, rows, columns, 1] -> logits of the same shape
    const Tensor skip1 = down1_(x), skip2 = down2_(pool_(skip1));
    return logits_(up1_(up2_(bottom_(pool_(skip2)), skip2), skip1));
  }

 private:
  ConvBlock down1_, down2_, bottom_;
  MaxPooling2D pool_;
  Up up2_, up1_;
  Conv2D logits_{1, 1};
};

constexpr int image_size = 32;

// Noisy images of two discs, and where the discs are: [n, size, size, 1] both.
std::pair<Tensor, Tensor> discs(int n) {
  const Tensor x = cast(range(image_size), f32), y = reshape(x, {image_size, 1});
  const auto disc = [&] {
    const Tensor column = random::uniform({n, 1, 1}, {.high = image_size}),
                 row = random::uniform({n, 1, 1}, {.high = image_size});
    return square(x - column) + square(y - row) < square(random::uniform({n, 1, 1}, {.low = 3, .high = 8}));
  };
  const Tensor masks = cast(disc() | disc(), f32);
  const Tensor images = masks + random::normal(masks.shape(), {.stddev = 0.7});
  return {expand_dims(images, -1), expand_dims(masks, -1)};
}

int main() {
  set_seed(1);
  const auto [images, masks] = discs(640);
  const auto all = data::from_tensor_slices(images, masks);
  const auto train = all.take(512).shuffle().batch(32).prefetch(), test = all.skip(512).batch(64);

  Model<UNet> model(UNet(8));
  Adam optimizer({.learning_rate = 3e-3});
  const auto loss = [](const Tensor& y, const Tensor& logits) {  // of pixels and of the overlap
    return BinaryCrossentropy(from_logits)(y, logits) + dice(y, sigmoid(logits));
  };
  fit(model, optimizer, loss, train, {.epochs = 6});

  BinaryIoU overlap;
  for (auto [x, y] : test) overlap.update(y, sigmoid(model(x)));
  print("intersection over union", overlap.result());
  check(overlap.result() > 0.9, "it finds the discs");
}
