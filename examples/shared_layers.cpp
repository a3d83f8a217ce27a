// Shows: a block of one's own that names the layers that it keeps on the heap, and two models that train in turns on the
//        same layers, as adversaries do.
// Prints: the number of variables of both together, how well the discriminator tells what is real before and after, and
//         the mean of what the generator makes, which nears that of the data (3).
#include <gradus/gradus.h>
using namespace gradus;

class Tower {
 public:
  Tower(int layers, int units) {
    for (int i = 0; i < layers; ++i) blocks_.push_back(Dense(units, relu));
  }
  Tensor operator()(Tensor x) const {
    for (const Dense& block : blocks_) x = block(x);
    return x;
  }
  auto layers() const { return named_layers("blocks", blocks_); }  // else its call says that they are not found

 private:
  std::vector<Dense> blocks_;
};

struct Scores {
  Tower tower{2, 16};
  Dense out{1};
  Tensor operator()(const Tensor& x) const { return out(tower(x)); }
};

int main() {
  set_seed(0);
  Sequential generator({Dense(16, relu), Dense(1)}, {.name = "generator"});
  Model<Scores> discriminator({}, {.name = "discriminator"});
  Sequential both{shared(generator), shared(discriminator)};  // without shared() it would be of copies
  both.build({f32, {any_size, 4}});
  print("variables", both.variables().size());
  check(both.variables().size() == generator.variables().size() + discriminator.variables().size(), "the same ones");

  Adam for_generator({.learning_rate = 2e-3}), for_discriminator({.learning_rate = 2e-3});
  BinaryCrossentropy loss_function(from_logits);
  auto step = function([&](Tensor real) {
    const Tensor noise = random::normal({real.shape()[0], 4});
    GradientTape tape({.persistent = true});
    const Loss fooled = loss_function(ones({real.shape()[0], 1}), both(noise, training));
    Loss told = loss_function(ones({real.shape()[0], 1}), discriminator(real, training));
    told += loss_function(zeros({real.shape()[0], 1}), both(noise, training));
    for_generator.apply_gradients(tape.gradient(fooled, generator.trainable_variables()));
    for_discriminator.apply_gradients(tape.gradient(told, discriminator.trainable_variables()));
    return told;
  });
  const double first = step(random::normal({64, 1}, {.mean = 3})).item();
  double last = 0;
  for (int i = 0; i < 1000; ++i) last = step(random::normal({64, 1}, {.mean = 3})).item();
  const double made = reduce_mean(generator(random::normal({1000, 4}))).item();
  print("told", first, "->", last, "made", made);
  check(made > 1, "the generator has learnt from what the discriminator knows");
}
