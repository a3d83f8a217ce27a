/// Hashes of results, a line each, to be compared between processors: processor_bits rows|trainings
///   rows: a case of every op row in each of its dtypes, values and gradients, interpreted and compiled
///   trainings: losses and all weights after some steps of five models
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/traced_function.h"
#include "gradus/gradus.h"
#include "gradus/graph/context.h"
#include "tests/ops/rows.h"

namespace gradus::processor_bits {
namespace {

/// FNV-1a.
class Hash {
 public:
  void add(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * std::uint64_t{1099511628211};
  }
  /// All NaNs are one: the contract leaves their sign and payload open.
  void add(const Tensor& given) {
    if (!given.defined()) return add("none", 4);
    const bool may_be_nan = is_floating(given.dtype());
    const Tensor x = may_be_nan ? where(is_nan(given), fill(given.shape(), NAN, given.dtype()), given) : given;
    add(x.observed().host(), static_cast<std::size_t>(bytes_of(x.spec())));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 1469598103934665603u;
};
std::uint64_t hash_of(In results) {
  Hash hash;
  for (const Tensor& each : results) hash.add(each);
  return hash.value();
}

// ---------------------------------------------------------------- op rows

Tensors with_gradients(const rows::Row& row, In in) {
  const RecordingScope keep;
  Tensors results{row.apply(in)};
  const Tensor y = results[0];
  if (!is_floating(y.dtype()) || !row.differentiable) return results;
  Tensors sources;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (is_floating(in[i].dtype()) && row.operands[i].has_gradient) sources.push_back(in[i]);
  if (sources.empty()) return results;
  for (const Tensor& gradient : vjp(cast(reduce_sum(y * 0.75), f64), sources)) results.push_back(gradient);
  return results;
}

/// Numbers depend on the row's name, the dtype and the case alone.
Tensors operands_of(const rows::Row& row, DType t, std::size_t shapes) {
  Hash seed;
  seed.add(row.name.data(), row.name.size());
  std::mt19937_64 random(seed.value() + static_cast<std::uint64_t>(t) * 77 + shapes);
  Tensors in;
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    const DType own = row.operands[i].dtype.value_or(t);
    rows::Array a{row.shapes[shapes][i], {}};
    for (std::int64_t k = 0; k < a.shape.size(); ++k)
      a.values.push_back(rows::draw_element(row.operands[i], own, random));
    in.push_back(rows::to_tensor(a, own));
  }
  return in;
}

/// Each dtype takes another of the row's first cases.
void print_row(const rows::Row& row) {
  std::vector<DType> dtypes = row.dtypes;
  for (const DType t : row.further_dtypes()) dtypes.push_back(t);
  for (std::size_t d = 0; d < dtypes.size(); ++d) {
    const std::size_t shapes = d % std::min<std::size_t>(4, row.shapes.size());
    std::string line = text(row.name, ' ', dtypes[d], ' ', shapes, ' ');
    try {
      const Tensors in = operands_of(row, dtypes[d], shapes);
      line += text(hash_of(with_gradients(row, in)));
      TracedFunction function({}, nullptr, 0);
      for (int call = 0; call < 3; ++call)  // the last of them are compiled
        line +=
            text(' ', hash_of(function.call(in, {}, [&](In x) { return Called{with_gradients(row, x), {}}; }).tensors));
    } catch (const Error& error) {
      line += text("refused: ", printable(std::string(error.what()).substr(0, 80), true));
    }
    std::cout << line << std::endl;
  }
}

void print_rows() {
  std::vector<const rows::Row*> all;
  for (const rows::Row& row : rows::all_rows()) all.push_back(&row);
  std::ranges::sort(all, {}, [](const rows::Row* row) { return row->name; });
  for (const rows::Row* row : all) print_row(*row);
}

// ---------------------------------------------------------------- trainings

template <class M, class L>
void train(const char* name, M model, Optimizer optimizer, const L& loss_function, const Tensor& x, const Tensor& y) {
  auto step = function([&](Tensor inputs, Tensor targets) {
    GradientTape tape;
    Loss loss = loss_function(targets, model(inputs, training));
    optimizer.apply_gradients(clip_by_global_norm(tape.gradient(loss, model.trainable_variables()), 1.0));
    return loss;
  });
  std::cout << name;
  for (int i = 0; i < 12; ++i) {
    const double loss = step(x, y).item();
    Hash hash;
    hash.add(&loss, sizeof loss);
    std::cout << ' ' << hash.value();
  }
  std::cout << '\n';
  for (const Variable& v : model.variables() + optimizer.variables()) {
    Hash hash;
    hash.add(v.value());
    std::cout << "  " << v.name() << ' ' << hash.value() << std::endl;
  }
}

void print_trainings() {
  const SparseCategoricalCrossentropy sparse(from_logits);
  const CategoricalCrossentropy categorical(from_logits);
  set_seed(1);
  Tensor x = random::normal({64, 784}), y = random::integers({64}, {.high = 10});
  train("mlp", Sequential{Dense(128, relu), Dense(10)}, Adam({.learning_rate = 1e-3}), sparse, x, y);
  set_seed(2);
  x = random::normal({8, 16, 16, 8}), y = random::integers({8}, {.high = 10});
  train("cnn",
        Sequential{Conv2D(16, 3, {.padding = Padding::same, .activation = relu}), BatchNormalization(), MaxPooling2D(2),
                   DepthwiseConv2D(3), Conv2D(32, 3), Flatten(), Dropout(0.2), Dense(10)},
        AdamW({.learning_rate = 1e-3, .weight_decay = 1e-2}), sparse, x, y);
  set_seed(3);
  x = random::integers({4, 33}, {.high = 50}), y = random::integers({4}, {.high = 5});
  train("lstm", Sequential{Embedding(50, 16), LSTM(24), LayerNormalization(), Dense(5)},
        RMSprop({.learning_rate = 1e-3}), sparse, x, y);
  set_seed(4);
  x = random::normal({50, 100}), y = one_hot(random::integers({50}, {.high = 10}), 10);
  train("bf16",
        Sequential({Dense(96, gelu), Dense(64, tanh), Dense(10, linear, {.dtype = f32})}, {.policy = mixed_bfloat16}),
        SGD({.learning_rate = 0.1, .momentum = 0.9}), categorical, x, y);
  set_seed(5);
  x = random::normal({50, 100}), y = one_hot(random::integers({50}, {.high = 10}), 10);
  train("f16", Sequential({Dense(96, relu), Dense(10, linear, {.dtype = f32})}, {.policy = mixed_float16}), Adam(),
        categorical, x, y);
}

}  // namespace
}  // namespace gradus::processor_bits

int main(int count, char** words) {
  const std::string_view wanted = count == 2 ? words[1] : "";
  if (wanted == "rows") return gradus::processor_bits::print_rows(), 0;
  if (wanted == "trainings") return gradus::processor_bits::print_trainings(), 0;
  std::cerr << "usage: processor_bits rows|trainings\n";
  return 2;
}
