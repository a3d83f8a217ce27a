// Shows: a variational autoencoder with a train step of its own: reparametrised samples, two losses, several outputs.
#include <gradus/gradus.h>
using namespace gradus;

constexpr int latent_size = 8;

struct Encoder {
  Dense hidden{256, relu}, mean{latent_size}, log_variance{latent_size};
  std::pair<Tensor, Tensor> operator()(const Tensor& x) const {
    const Tensor h = hidden(x);
    return {mean(h), log_variance(h)};
  }
};

struct Decoder {
  Dense hidden{256, relu}, pixels{784};
  Tensor operator()(const Tensor& z) const { return pixels(hidden(z)); }
};

class VAE {
 public:
  explicit VAE(double learning_rate) : optimizer_({.learning_rate = learning_rate}) {}

  Loss train_step(const Tensor& x) { return step_(x); }
  Tensor generate(int n) const { return sigmoid(decoder_(random::normal({n, latent_size}))); }
  Loss loss(const Tensor& x) const {
    const auto [mean, log_variance] = encoder_(x);
    const Tensor z = mean + exp(log_variance / 2) * random::normal(mean.shape());
    const Tensor reconstruction = 784 * binary_crossentropy(x, decoder_(z), from_logits);
    const Tensor kl = -0.5 * reduce_sum(1 + log_variance - square(mean) - exp(log_variance), {.axis = {1}});
    return Loss::mean(reconstruction + kl);
  }

 private:
  Model<Encoder> encoder_;
  Model<Decoder> decoder_;
  Adam optimizer_;
  std::function<Loss(Tensor)> step_ = function([this](Tensor x) {
    GradientTape tape;
    const Loss value = loss(x);
    optimizer_.apply_gradients(tape.gradient(value, encoder_.trainable_variables() + decoder_.trainable_variables()));
    return value;
  });
};

int main(int argc, char** argv) {
  const std::filesystem::path directory = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  set_seed(1);
  const auto images = data::from_idx(directory / "train-images-idx3-ubyte.gz", directory / "train-labels-idx1-ubyte.gz")
                          .map([](Tensor image, Tensor) { return reshape(cast(image, f32) / 255, {784}); });
  const auto train = images.shuffle().batch(128).prefetch();

  VAE vae(1e-3);
  Loss total;
  for (int epoch = 0; epoch < 3; ++epoch) {
    total = {};
    for (auto x : train) total += vae.train_step(x);
    print("epoch", epoch, "loss", total);
  }
  check(total.item() < 255, "it reconstructs");
  const Tensor made = vae.generate(8);
  print("made", made.shape(), "mean", reduce_mean(made));
}
