// Mistakes that must not compile. CASE 0 is the correct program; every other case adds one mistake (check_misuse.py
// tries them all). Where a line `// says: ...` follows, that is in what GCC says, which has at most ten lines.
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

  Model<TwoInputs> two;
  [[maybe_unused]] auto joint = [](Tensor t, const std::tuple<Tensor, Tensor>& p) {
    return Loss::mean(square(t - std::get<0>(p)));
  };
#if CASE == 0
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
  [[maybe_unused]] std::tuple<Tensor, Tensor> outputs = two(x, x, training);
  const auto weighted = data::from_tensor_slices(x, y, cast(y, f32));
  fit(model, optimizer, loss_function, weighted, {.validation = weighted, .sample_weight = true});
  fit(two, optimizer, joint, data::from_tensor_slices(x, x, x));
  print(v, model, std::vector{1.0, 2.0}, std::pair{x, "text"}, std::optional<int>(), std::array{x, y});
  std::cout << v << model;
  constant(std::vector<float>{1, 2}), constant(std::vector<std::vector<int>>{{1}, {2}}), constant({{{1.0}, {2.0}}});
  greater(x, 0.5), greater(0.5, x), equal(1, y), maximum(v, 0), isclose(x, 0.5), logical_and(x > 0, true);
  where(x > 0, 1.0, 0.0), where(x > 0, 1, 0), where(x > 0, x, 0), where(x > 0, 0, v);
  const Dense by_option(3, {.activation = relu}), without_bias(3, {.use_bias = false}), named(3, {});
  function([](Tensor a, Tensor factor) { return a * factor; })(v, 0.5);
  scan([](Tensor h, Tensor row) { return std::pair{h + row, h}; }, zeros({4}), x);
  x(all, slice(1, end), newaxis), x(ellipsis, -1), x(y, all), v(ellipsis).assign(0.5);
  gather(x, y, {.axis = 0}), concat({x, x}, {.axis = 1}), softmax(x, {.axis = 0}), sort(x, {.axis = 0});
#elif CASE == 1  // logits or probabilities? It has to be said.
  // says: from_logits or from_probabilities?
  SparseCategoricalCrossentropy unsaid;
#elif CASE == 2
  sparse_categorical_crossentropy(y, model(x));
#elif CASE == 3  // accumulating what is already clipped
  // says: add them up first, clip the sum
  gradients += clip_by_global_norm(gradients, 1.0);
#elif CASE == 4  // fitting without a loss or without an optimizer
  fit(model, optimizer, dataset);
#elif CASE == 5
  fit(model, loss_function, dataset);
#elif CASE == 6   // a compiled function with a floating parameter: one variant per value
  // says: a floating number is a scalar Tensor within: take a Tensor
  auto scaled = function([&](Tensor a, double factor) { return a * factor; });
  scaled(x, 0.5);
#elif CASE == 9   // a map of one argument over pairs
  // says: the function takes one Tensor for each field of an element
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
  // says: gradients know their variables
  optimizer.apply_gradients(gradients, model.trainable_variables());
#elif CASE == 16  // a loss that gives a tensor has no weight
  // says: a loss gives a Loss, which knows its weight
  fit(model, optimizer, [](Tensor b, Tensor p) { return reduce_mean(square(b - p)); }, dataset);
#elif CASE == 17  // a gradient alone does not know its variable: ask for Variables{v}
  // says: ask for tape.gradient(loss, Variables{v})
  optimizer.apply_gradients(tape.gradient(loss, v));
#elif CASE == 18  // misspelt option
  Adam misspelt({.learning_rte = 0.1});
#elif CASE == 19  // {v} would be a copy of v, a new cell: Variables{v}
  // says: Variables{v}
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
  // says: equal(a, b) elementwise, or bitwise_equal(a, b)
  if (x == y) print("equal");
#elif CASE == 26
  // says: not_equal(x, 0)
  auto zeros = x != 0;
#elif CASE == 27  // a view of a temporary
  auto view = (x + 1).span<float>();
#elif CASE == 28  // no dtype for these
  constant({'a', 'b'});
#elif CASE == 29
  from_values(std::vector<unsigned>{1, 2}, {2});
#elif CASE == 30  // a text is no argument of a compiled function: an enum is
  // says: texts are no arguments: take an enum, or capture the text
  function([](Tensor a, std::string) { return a; })(x, std::string("fast"));
#elif CASE == 31  // and no result
  // says: it gives Tensors, Loss, Gradients
  function([](Tensor a) { return std::string(a.shape().rank() ? "many" : "one"); })(x);
#elif CASE == 32  // a number read while tracing would be frozen: give back the tensor
  // says: it gives Tensors, Loss, Gradients
  function([](Tensor a) { return reduce_sum(a).item(); })(x);
#elif CASE == 33  // state of the closure would change once per trace, not once per call
  // says: the state of a mutable lambda would be frozen
  function([n = 0](Tensor a) mutable { return a + n++; })(x);
#elif CASE == 34  // an optimizer captured by value is a copy
  function([optimizer, &gradients] { optimizer.apply_gradients(gradients); })();
#elif CASE == 35  // too few fields for a model of two inputs
  // says: the model does not take the fields before y
  fit(two, optimizer, joint, dataset);
#elif CASE == 36  // too few inputs
  // says: the struct takes other inputs
  two(x, training);
#elif CASE == 37  // the mode comes last
  // says: the mode comes last: model(x, training)
  model(training, x);
#elif CASE == 38  // a padding is not a text
  Conv2D convolution(8, 3, {.padding = "same"});
#elif CASE == 39  // the state of a loop is tensors
  // says: a state is Tensors: constant(0)
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
#elif CASE == 45  // texts for what is no text
  // says: tensors hold numbers, no texts
  constant("text");
#elif CASE == 46
  // says: print: this type has no operator<<
  print(optimizer);
#elif CASE == 47
  // says: texts are no arguments: take an enum, or capture the text
  function([](Tensor a, const char*) { return a; })(x, "fast");
#elif CASE == 48
  // says: activations are functions: relu
  Dense activated(3, "relu");
#elif CASE == 49
  // says: initializers are functions
  Dense initialized(3, relu, {.kernel_initializer = "zeros"});
#elif CASE == 50
  // says: metrics are objects: SparseCategoricalAccuracy()
  fit(model, optimizer, loss_function, dataset, {.metrics = {"accuracy"}});
#elif CASE == 51
  // says: a loss is an object or a function
  fit(model, optimizer, "mse", dataset);
#elif CASE == 52  // options that have another name, or are elsewhere
  // says: there is no option validation_data: it is called .validation
  fit(model, optimizer, loss_function, dataset, {.epochs = 2, .validation_data = dataset, .verbose = false});
#elif CASE == 53
  // says: there is no option batch_size: the data set makes batches
  fit(model, optimizer, loss_function, dataset, {.epochs = 2, .batch_size = 32});
#elif CASE == 54
  // says: there is no option batch_size: the data set makes batches
  evaluate(model, loss_function, dataset, {.batch_size = 32});
#elif CASE == 55
  // says: there is no option input_shape
  fit(model, optimizer, loss_function, dataset, {.input_shape = {28, 28, 1}});
#elif CASE == 56
  // says: there is no option input_shape
  Dense shaped(3, relu, {.input_shape = {4}});
#elif CASE == 57
  // says: a step takes one Tensor for each field of the data set and gives Logs
  fit(model, optimizer, TrainingSteps{.train = [](Tensor x, Tensor) { return Loss::mean(x); }}, dataset);
#elif CASE == 58
  // says: there is no option shuffle: the data set shuffles
  fit(model, optimizer, loss_function, dataset, {.shuffle = true});
#elif CASE == 59
  // says: losses are objects: MeanSquaredError()
  OutputLoss by_name("mse");
#elif CASE == 60
  // says: there is no option lr: it is called .learning_rate
  Adam short_name({.lr = 0.1});
#elif CASE == 61
  // says: Adam({.learning_rate = 1e-3})
  Adam by_place(0.1);
#elif CASE == 62  // a struct of layers is a model by Model<Net>
  // says: a model is a plain struct of layers, struct Net { ... }; Model<Net> model;
  struct Net : Module {
    Dense hidden{3};
    Tensor operator()(Tensor a) const { return hidden(a); }
  } net;
#elif CASE == 63
  // says: a model is a plain struct of layers
  struct Net : Module {
    Dense hidden;
    Net() : hidden(3) {}
    Tensor operator()(Tensor a) const { return hidden(a); }
  };
  Model<Net> net;
#elif CASE == 64
  // says: operator() of the struct must be const
  struct Net {
    Dense hidden{3};
    Tensor operator()(Tensor a) { return hidden(a); }
  };
  Model<Net>()(x);
#elif CASE == 65
  // says: its operator() is to be const
  struct Net {
    Dense hidden{3};
    Tensor operator()(Tensor a) { return hidden(a); }
  };
  Model<Net> net;
  fit(net, optimizer, loss_function, dataset);
#elif CASE == 66
  // says: Net cannot be made without arguments: Model model(Net(...))
  struct Net {
    Dense hidden;
    explicit Net(int n) : hidden(n) {}
    Tensor operator()(Tensor a) const { return hidden(a); }
  };
  Model<Net> net;
#elif CASE == 67
  // says: a function becomes a layer by Lambda(relu)
  Sequential with_function{Dense(3), tanh, Dense(2)};
#elif CASE == 68  // what belongs where
  // says: the second argument is an optimizer: model, optimizer, loss, data
  fit(model, loss_function, optimizer, dataset);
#elif CASE == 69
  // says: data is a data set: data::from_tensor_slices(x, y).batch(32)
  fit(model, optimizer, loss_function, x);
#elif CASE == 70
  // says: the first argument is a model
  fit(x, optimizer, loss_function, dataset);
#elif CASE == 71
  // says: a Variable is its value within: take a Tensor, or capture it
  function([](Variable& a) { return a * 2; })(v);
#elif CASE == 72
  // says: Tensors, numbers, enums, vectors and structs of them; capture others
  function([](const Sequential& m, Tensor a) { return m(a); })(model, x);
#elif CASE == 73
  // says: the function that was given takes other arguments
  function([](Tensor a) { return a; })(x, x);
#elif CASE == 74  // loops and branches
  // says: scan: the body gives a pair of the next state and a Tensor: std::pair{h, h}
  scan([](Tensor h, Tensor row) { return h + row; }, zeros({4}), x);
#elif CASE == 75
  // says: scan: the body takes the tensors of the state, one by one, and a row of xs
  scan([](Tensor row) { return std::pair{row, row}; }, zeros({4}), x);
#elif CASE == 76
  // says: a state is Tensors: constant(0), a std::tuple
  scan([](Tensor h, Tensor row) { return std::pair{h + row, h}; }, 0.0, x);
#elif CASE == 77
  // says: while_loop: the body gives the next state, of the type of the first one
  while_loop([](Tensor a) { return a < 3; }, [](Tensor a) { return std::pair{a, a}; }, constant(0));
#elif CASE == 78
  // says: while_loop: the condition gives one boolean as a Tensor, such as i < 3
  while_loop([](Tensor) { return true; }, [](Tensor a) { return a + 1; }, constant(0));
#elif CASE == 79
  // says: constant(1.0) makes one of a number
  Tensor chosen = cond(reduce_sum(x) > 0, [] { return 1.0; }, [] { return 0.0; });
#elif CASE == 80
  // says: cond: both branches are functions without arguments
  Tensor picked = cond(reduce_sum(x) > 0, x, x);
#elif CASE == 81  // numbers beside tensors are numbers
  // says: NumberOrTensor
  greater(x, "0.5");
#elif CASE == 82  // a strategy has no scope: Variables know it
  // says: no scope is needed
  MirroredStrategy().scope();
#elif CASE == 83  // of a strategy with parameter servers alone
  // says: a ParameterServerStrategy schedules; here strategy.run(step, x, y)
  MirroredStrategy().schedule(step, x, y);
#elif CASE == 84
  // says: a ParameterServerStrategy joins; strategy.run returns when the step is done
  MirroredStrategy().join();
#elif CASE == 85  // a function is exported, not a model
  // says: function(step).export_object(stem, specs)
  model.export_object("predict", {{f32, {8, 4}}});
#elif CASE == 86  // a device is an object
  // says: devices are objects: x.to(gpu(0))
  Tensor moved = x.to("gpu");
#elif CASE == 87
  // says: devices are objects: DeviceScope scope(gpu(0))
  DeviceScope scope("gpu:0");
#elif CASE == 88  // devices are an option
  // says: MirroredStrategy({.devices = {cpu(0), cpu(1)}})
  MirroredStrategy listed({cpu(0), cpu(1)});
#elif CASE == 89
  // says: there is no option replicas: one a device, .devices = {cpu(0), cpu(1)}
  MirroredStrategy counted({.replicas = 2});
#elif CASE == 90  // arguments one by one
  // says: tensors one by one: strategy.run(step, x, y)
  MirroredStrategy().run(step, {x, y});
#elif CASE == 91  // the work, not its result
  // says: give the work, not its result: profile([&] { step(x, y); })
  profile(step(x, y));
#elif CASE == 92  // modes are an enum
  // says: modes are FlipMode::horizontal, FlipMode::vertical
  RandomFlip flip("horizontal");
#elif CASE == 93  // what is required is positional
  // says: groups come first: GroupNormalization(4)
  GroupNormalization grouped{{.groups = 4}};
#elif CASE == 94  // a model takes a struct, not its arguments
  // says: the struct is made first: Model model(Net(arguments))
  struct Net {
    Dense hidden{3};
    Net() = default;
    explicit Net(int n) : hidden(n) {}
    Tensor operator()(Tensor a) const { return hidden(a); }
  };
  Model<Net> net(5);
#elif CASE == 95
  // says: an integer, or a tensor of integers or booleans
  x(all, 0.5);
#elif CASE == 96
  // says: a mean with weights is Loss::mean(per_example, weight)
  Loss weighted = Loss::weighted_mean(square(x), x);
#elif CASE == 97  // metrics are objects
  // says: metrics are objects: SparseCategoricalAccuracy()
  fit(model, optimizer, loss_function, dataset, {.metrics = {sparse_categorical_accuracy}});
#elif CASE == 98
  // says: conv1d, conv2d, conv3d
  conv(x, x);
#elif CASE == 99
  // says: floating numbers and Variables in a struct: make the field a Tensor
  struct Rate {
    Tensor value;
    double rate;
  };
  function([](const Rate& r) { return r.value; })(Rate{x, 0.1});
#elif CASE == 100
  // says: it gives Tensors, Loss, Gradients, vectors or structs of them
  struct Counted {
    Tensor value;
    int count;
  };
  function([](Tensor a) { return Counted{a, 1}; })(x);
#elif CASE == 101
  // says: a field cannot become a PerReplica: give Tensors in a tuple or vector
  struct Sums {
    Tensor rows, columns;
  };
  MirroredStrategy().run([](Tensor a) { return Sums{a, a}; }, x);
#elif CASE == 102
  // says: strings live on the host: look them up by
  relu(Strings{"a", "b"});
#elif CASE == 103
  // says: one of strings is mapped to numbers before
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(Strings{"a"}, x));
#elif CASE == 104
  // "an aggregate of more than 32 fields", in more lines than other cases have
  struct Wide {
    Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag;
  };
  function([](const Wide& wide) { return wide.a; })(Wide{x});
#endif
}
