// Mistakes that must not compile. CASE 0 is the correct program; every other case adds one mistake (check_misuse.py
// tries them all).
#include <gradus/gradus.h>
using namespace gradus;

enum class Mode { fast, exact };

struct TwoInputs {
  Dense first{4}, second{4};
  std::tuple<Tensor, Tensor> operator()(Tensor a, Tensor b) const { return {first(a), second(b)}; }
};

int main() {
  const Tensor x = random::normal({8, 4}), y = random::integers({8}, {.high = 3});
  Sequential model{Dense(3)};
  Adam optimizer;
  SparseCategoricalCrossentropy loss_function(from_logits);
  [[maybe_unused]] const auto dataset = data::from_tensor_slices(x, y);
  GradientTape tape;
  Loss loss = loss_function(y, model(x, training));
  [[maybe_unused]] Gradients gradients = tape.gradient(loss, model.trainable_variables());
  Variable v(constant(1.0)), w(v);  // two cells
  const Variable& seen = v;
  [[maybe_unused]] const Variables cells = Variables{v, w} + Variables{seen};
  auto step = function([&](Tensor a, Tensor b) { return loss_function(b, model(a)); });
  step(x, y);

  // Right ways of saying what the cases below get wrong.
  tape.gradient(loss, Variables{v, w}, {.unconnected = Unconnected::zero});
  [[maybe_unused]] std::array<Tensor, 2> both = tape.gradient(x, {x, y}, {.output_gradients = x});
  [[maybe_unused]] Tensor one = tape.gradient(loss, v);
  Sequential in_parentheses({Dense(3)}), listed(std::vector<Module>{Dense(4), Dense(3)}, {.name = "listed"});
  in_parentheses.add(
      Dense(5, [](Tensor t) { return t * sigmoid(t); }, {.kernel_initializer = initializers::he_normal}));
  auto typed = function([](std::tuple<Tensor, Tensor> pair, Mode, std::array<int, 2>) { return std::get<0>(pair); });
  typed(std::tuple{x, 0.5}, Mode::exact, std::array{1, 2});
  while_loop([](Tensor a, Tensor) { return a < 3; }, [](Tensor a, Tensor b) { return std::tuple{a + 1, b}; },
             std::tuple{constant(0), x}, {.max_iterations = 8});
  gradients += value_and_gradient([&] { return loss_function(y, model(x)); }, model.trainable_variables()).gradients;
  Sequential copy = model;
  Adam copied = optimizer;
  copied.rebind(copy.trainable_variables().filter([](std::string_view name) { return name.ends_with("kernel"); }));
  Model<TwoInputs> two;
  [[maybe_unused]] std::tuple<Tensor, Tensor> outputs = two(x, x, training);
  const auto weighted = data::from_tensor_slices(x, y, cast(y, f32));
  fit(model, optimizer, loss_function, weighted, {.validation = weighted, .sample_weight = true});
  auto joint = [](Tensor t, const std::tuple<Tensor, Tensor>& p) { return Loss::mean(square(t - std::get<0>(p))); };
  fit(two, optimizer, joint, data::from_tensor_slices(x, x, x));
#if CASE == 1  // logits or probabilities? It has to be said.
  SparseCategoricalCrossentropy unsaid;
#elif CASE == 2
  sparse_categorical_crossentropy(y, model(x));
#elif CASE == 3  // accumulating what is already clipped
  gradients += clip_by_global_norm(gradients, 1.0);
#elif CASE == 4  // fitting without a loss or without an optimizer
  fit(model, optimizer, dataset);
#elif CASE == 5
  fit(model, loss_function, dataset);
#elif CASE == 6   // a compiled function with a floating parameter: one variant per value
  auto scaled = function([&](Tensor a, double factor) { return a * factor; });
  scaled(x, 0.5);
#elif CASE == 9   // a map of one argument over pairs
  dataset.map([](Tensor a) { return a; });
#elif CASE == 10  // two names for one tensor
  for (auto [a, b] : data::range(3)) print(a, b);
#elif CASE == 11  // a tensor is not a number
  float f = reduce_sum(x);
#elif CASE == 12  // a loss is not a number either: loss.item()
  double d = loss;
#elif CASE == 13  // a tape cannot be copied
  GradientTape other = tape;
#elif CASE == 14  // slices of which size?
  map_batches(model, x);
#elif CASE == 15  // gradients belong to their variables: nothing to zip, nothing to mismatch
  optimizer.apply_gradients(gradients, model.trainable_variables());
#elif CASE == 16  // a loss that gives a tensor has no weight
  fit(model, optimizer, [](Tensor b, Tensor p) { return reduce_mean(square(b - p)); }, dataset);
#elif CASE == 17  // a gradient alone does not know its variable: ask for Variables{v}
  optimizer.apply_gradients(tape.gradient(loss, v));
#elif CASE == 18  // misspelt option
  Adam misspelt({.learning_rte = 0.1});
#elif CASE == 19  // {v} would be a copy of v, a new cell: Variables{v}
  tape.gradient(loss, {v});
#elif CASE == 20
  tape.gradient(x, {v, w});
#elif CASE == 21  // a copy of a variable is a new cell: Variable&, or Variable other(v)
  for (Variable each : model.trainable_variables()) each.assign_add(constant(1.0));
#elif CASE == 22
  auto kernel = model.trainable_variables()[0];
#elif CASE == 23  // a cell that dies at the semicolon
  Variables temporary{Variable(constant(1.0))};
#elif CASE == 24  // assigning is said: v.assign(x)
  v = x;
#elif CASE == 25  // elementwise or as a whole? equal(x, y), bitwise_equal(x, y)
  if (x == y) print("equal");
#elif CASE == 26
  auto zeros = x != 0;
#elif CASE == 27  // a view of a temporary
  auto view = (x + 1).span<float>();
#elif CASE == 28  // no dtype for these
  constant({'a', 'b'});
#elif CASE == 29
  from_values(std::vector<unsigned>{1, 2}, {2});
#elif CASE == 30  // a text is no argument of a compiled function: an enum is
  function([](Tensor a, std::string) { return a; })(x, std::string("fast"));
#elif CASE == 31  // and no result
  function([](Tensor a) { return std::string(a.shape().rank() ? "many" : "one"); })(x);
#elif CASE == 32  // a number read while tracing would be frozen: give back the tensor
  function([](Tensor a) { return reduce_sum(a).item(); })(x);
#elif CASE == 33  // state of the closure would change once per trace, not once per call
  function([n = 0](Tensor a) mutable { return a + n++; })(x);
#elif CASE == 34  // an optimizer captured by value is a copy
  function([optimizer, &gradients] { optimizer.apply_gradients(gradients); })();
#elif CASE == 35  // too few fields for a model of two inputs
  fit(two, optimizer, joint, dataset);
#elif CASE == 36  // too few inputs
  two(x, training);
#elif CASE == 37  // the mode comes last
  model(training, x);
#elif CASE == 38  // a padding is not a text
  Conv2D convolution(8, 3, {.padding = "same"});
#elif CASE == 39  // the state of a loop is tensors
  while_loop([](Tensor a) { return a < 3; }, [](Tensor a) { return a + 1; }, 0);
#elif CASE == 40  // a loss knows its weight: Loss::mean(x) or Loss::of(x)
  Loss total = reduce_mean(x);
#elif CASE == 41  // the comma operator: a kernel of 5. {3, 5}
  Conv2D comma(32, (3, 5));
#elif CASE == 42  // and a padding of 2
  ZeroPadding2D around((1, 2));
#elif CASE == 43  // x[1] in C++20: x[0][1]
  Tensor element = x[0, 1];
#elif CASE == 44  // of variables, too
  const std::int64_t row = 0, column = 1;
  Tensor other_element = x[row, column];
#endif
}
