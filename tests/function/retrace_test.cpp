/// A call of a function ends: what its C++ copies, makes, replaces or changes while it is traced is an error that names
/// it, never one retrace after the other.
#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include "gradus/function/function.h"
#include "gradus/function/restarts.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/custom_gradient.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/metrics.h"
#include "gradus/nn/model.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"

namespace gradus::retrace_test {
namespace {

struct Net {
  Dense hidden{4, relu}, out{2};
  Tensor operator()(Tensor x) const { return out(hidden(x)); }
};

/// What the C++ of a function does wrong, and what the error names.
struct Case {
  std::string name;
  std::function<Tensor(Tensor)> body;
  std::vector<std::string> says;
};

const Tensor& input() {
  static const Tensor x = ones({3, 4});
  return x;
}

std::vector<Case> cases() {
  struct Models {
    Sequential sequential{Dense(3, relu), Dense(2)};
    Model<Net> net;
    Dense dense{3};
    std::vector<Sequential> several{Sequential{Dense(2)}, Sequential{Dense(2)}};
    LSTM lstm{3};
    Variable weight{ones({4, 2}), "weight"};
  };
  const auto m = std::make_shared<Models>();
  m->sequential(input());
  m->net(input());
  m->dense(input());
  for (const Sequential& each : m->several) each(input());
  m->lstm(ones({2, 3, 4}));
  const std::vector<std::string> made = {"was made and destroyed while the function was traced", "by reference"};
  const auto naming = [&](std::string what) {
    std::vector<std::string> says = made;
    says.push_back("variable " + std::move(what));
    return says;
  };
  return {
      {"a lambda that takes a model by value",
       [m](Tensor x) {
         const auto helper = [](Sequential s, Tensor in) { return s(in); };
         return helper(m->sequential, x);
       },
       naming("dense")},
      {"auto copy = model",
       [m](Tensor x) {
         const auto copy = m->sequential;
         return copy(x);
       },
       naming("dense")},
      {"a layer copied",
       [m](Tensor x) {
         const Dense copy = m->dense;
         return copy(x);
       },
       naming("dense")},
      {"a recurrent layer copied",
       [m](Tensor x) {
         const LSTM copy = m->lstm;
         return copy(reshape(x, {1, 3, 4}));
       },
       naming("lstm")},
      {"a model of a struct by value",
       [m](Tensor x) {
         const auto helper = [](Model<Net> net, Tensor in) { return net(in); };
         return helper(m->net, x);
       },
       naming("hidden")},
      {"a struct with a model in it by value",
       [m](Tensor x) {
         struct Held {
           Sequential model;
         };
         const auto helper = [](Held held, Tensor in) { return held.model(in); };
         return helper(Held{m->sequential}, x);
       },
       naming("dense")},
      {"a lambda that captures by value",
       [m](Tensor x) {
         const Sequential& model = m->sequential;
         const auto helper = [=](Tensor in) { return model(in); };
         return helper(x);
       },
       naming("dense")},
      {"a vector of models copied",
       [m](Tensor x) {
         Tensor sum = zeros({3, 2});
         for (const auto& each : std::vector<Sequential>(m->several)) sum = sum + each(x);
         return sum;
       },
       naming("dense")},
      {"for (auto each : models)",
       [m](Tensor x) {
         Tensor sum = zeros({3, 2});
         for (auto each : m->several) sum = sum + each(x);
         return sum;
       },
       naming("dense")},
      {"a model made within",
       [](Tensor x) {
         const Sequential model{Dense(3, relu), Dense(2)};
         return model(x);
       },
       naming("dense")},
      {"a model of a struct made within",
       [](Tensor x) {
         const Model<Net> model;
         return model(x);
       },
       naming("hidden")},
      {"a Variable made within",
       [](Tensor x) {
         Variable local(constant({{1.f}, {2.f}, {3.f}, {4.f}}), "local");
         return matmul(x, local);
       },
       naming("local")},
      {"a copy of a Variable",
       [m](Tensor x) {
         const Variable copy(m->weight);
         return matmul(x, copy);
       },
       naming("weight")},
      {"a Variable made within, of what waits",
       [m](Tensor x) {
         const Variable local(ones({4, 2}), "local");
         return matmul(x, local);
       },
       {"variable local", "make Variables outside of traced functions"}},
      {"an optimizer made within",
       [m](Tensor x) {
         GradientTape tape;
         const Tensor loss = reduce_mean(square(m->sequential(x)));
         Adam optimizer;
         optimizer.apply_gradients(tape.gradient(loss, m->sequential.trainable_variables()));
         return loss;
       },
       made},
      {"a metric made within",
       [m](Tensor x) {
         Metric mean("error", [](const Tensor&, const Tensor& p) { return reduce_mean(p, {.axis = {1}}); });
         mean.update(x, x);
         return x;
       },
       made},
      {"within a function that it calls",
       [m](Tensor x) {
         const auto inner = function([m](Tensor in) {
           const auto copy = m->sequential;
           return copy(in);
         });
         return inner(x);
       },
       naming("dense")},
      {"in both bodies of a cond",
       [m](Tensor x) {
         const auto twice = [m, x] { return Sequential(m->sequential)(x); };
         return cond(reduce_sum(x) > 0, twice, [m, x] { return Sequential(m->sequential)(-x); });
       },
       naming("dense")},
      {"in the body of a while_loop",
       [m](Tensor x) {
         return while_loop([](Tensor in) { return reduce_sum(in) < 10.f; },
                           [m](Tensor in) { return in + reduce_sum(abs(Sequential(m->sequential)(in))) + 1; }, x);
       },
       naming("dense")},
      {"in the body of a scan",
       [m](Tensor x) {
         const auto body = [m](Tensor state, Tensor row) {
           return std::pair{state + Sequential(m->sequential)(reshape(row, {1, 4})), state};
         };
         return scan(body, zeros({1, 2}), x).first;
       },
       naming("dense")},
      {"in what is differentiated",
       [m](Tensor x) { return gradient([m](Tensor in) { return reduce_sum(Sequential(m->sequential)(in)); }, x); },
       naming("dense")},
      {"in what is recomputed",
       [m](Tensor x) {
         GradientTape tape;
         tape.watch(x);
         const auto f = recompute_grad([m](Tensor in) { return reduce_sum(Sequential(m->sequential)(in)); });
         return tape.gradient(f(x), x);
       },
       naming("dense")},
      {"in what is mapped over rows",
       [m](Tensor x) {
         return vectorized_map([m](Tensor row) { return Sequential(m->sequential)(reshape(row, {1, 4})); }, x);
       },
       naming("dense")},
  };
}

void expect_refused(const Case& each, const auto& f) {
  try {
    f(input()).observed();
    ADD_FAILURE() << each.name << ": accepted";
  } catch (const InvalidArgument& error) {
    for (const std::string& said : each.says)
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos)
          << each.name << ": `" << said << "` is not in: " << error.what();
  }
}

TEST(Retrace, WhatIsCopiedOrMadeWithinIsNamedAndEveryCallEnds) {
  for (const Case& each : cases()) {
    int runs = 0;
    const auto f = function([&](Tensor x) {
      ++runs;
      return each.body(x);
    });
    for (int call = 0; call < 2; ++call) {
      runs = 0;
      expect_refused(each, f);
      EXPECT_LE(runs, 2) << each.name;
    }
    const auto open = function([&](Tensor x) { return each.body(x); }, {.input_signature = {{f32, {any_size, 4}}}});
    EXPECT_THROW(open(input()), InvalidArgument) << each.name << ", sizes open";
    const auto guarded = function([&](Tensor x) {
      if (reduce_sum(x) > 100.f) return each.body(x);
      return x;
    });
    EXPECT_EQ(reduce_sum(guarded(input())).item(), 12) << each.name;
    EXPECT_THROW(guarded(input() + 100), InvalidArgument) << each.name << ", on another path";
    EXPECT_EQ(reduce_sum(guarded(input())).item(), 12) << each.name << ": the path that was there stays";
  }
}

TEST(Retrace, ByReferenceAllOfItWorks) {
  const Sequential model{Dense(3, relu), Dense(2)};
  const Tensor expected = model(input());
  const auto helper = [](const Sequential& s, Tensor in) { return s(in); };
  const auto f = function([&](Tensor x) { return helper(model, x); });
  const auto by_value = function([model](Tensor x) { return model(x); });
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(f(input()).to_vector<float>(), expected.to_vector<float>());
    EXPECT_EQ(by_value(input()).to_vector<float>(), expected.to_vector<float>());
  }
  EXPECT_TRUE(f.explain().retraces.empty());
}

TEST(Retrace, WhatIsMadeAtTheFirstCallAndStaysIsKept) {
  std::optional<Sequential> model;
  std::optional<Variable> count;
  const auto f = function([&](Tensor x) {
    if (!model) model.emplace(Sequential{Dense(2)});
    if (!count) count.emplace(constant(0.f), "count");
    count->assign_add(constant(1.f));
    return (*model)(x);
  });
  for (int call = 1; call <= 4; ++call) {
    f(input()).observed();
    EXPECT_EQ(count->value().item(), call);
  }
  EXPECT_TRUE(f.explain().retraces.empty());
}

TEST(Retrace, ACopyOfWhatTheFunctionHasAssignedIsRefused) {
  Variable w(constant({1.f, 2.f}), "w");
  std::optional<Variable> before, after;
  const auto f = function([&](Tensor x) {
    if (!before) before.emplace(w);
    w.assign_add(x);
    after.emplace(w);
    return w.value();
  });
  expect_says(error_of<InvalidArgument>([&] { f(ones({2})); }), "variable w: copied within a traced function");
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(before->value().to_vector<float>(), (std::vector<float>{1, 2})) << "as it was before the call";
}

TEST(Retrace, AModelThatEachTraceReplaces) {
  std::optional<Sequential> model;
  const auto f = function([&](Tensor x) {
    model.emplace(Sequential{Dense(2)});
    return (*model)(x);
  });
  const auto values = f(input()).to_vector<float>();
  EXPECT_EQ(f(input()).to_vector<float>(), values) << "C++ runs at the trace alone";
  for (int rows = 4; rows < 8; ++rows)  // sizes vary: it is traced several times, and made as often
    EXPECT_NE(error_of<InvalidArgument>([&] { f(ones({rows, 4})); }).find("dense"), std::string::npos);
  std::optional<Sequential> used;
  used.emplace(Sequential{Dense(2)});
  const auto replaces = function([&](Tensor x) {
    const Tensor y = (*used)(x);
    used.emplace(Sequential{Dense(2)});
    return y;
  });
  try {
    replaces(input());
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgument& error) {
    expect_says(error.what(), "destroyed while the function was traced");
    expect_says(error.what(), "dense");
  }
}

struct Counting {
  Dense out{2};
  mutable int calls = 0;
  bool deep = false;
  Tensor operator()(Tensor x) const {
    ++calls;
    return deep ? out(out(x)) : out(x);
  }
};

TEST(Retrace, FieldsThatTheFunctionItselfChanges) {
  const Model<Counting> counting;
  counting(ones({1, 2}));
  const auto f = function([&](Tensor x) { return counting(x); });
  try {
    f(ones({1, 2}));
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgument& error) {
    expect_says(error.what(), "field `calls`");
    expect_says(error.what(), "was 1, now 2");
  }
}

struct Switched {
  Dense out{2};
  bool deep = false;
  Tensor operator()(Tensor x) const { return deep ? out(out(x)) : out(x); }
};

TEST(Retrace, FieldsThatFlipAndFieldsThatAreSetToWhatTheyWere) {
  const Model<Switched> model;
  const Tensor x = ones({1, 2});
  const Tensor once = model(x), twice = model(once);
  const auto flips = function([&](Tensor in) {
    const Tensor y = model(in);
    model->deep = !model->deep;
    return y;
  });
  for (int call = 0; call < 3; ++call) EXPECT_THROW(flips(x), InvalidArgument);
  model->deep = false;
  const auto sets = function([&](Tensor in) {
    model->deep = true;
    return model(in);
  });
  for (int call = 0; call < 3; ++call) EXPECT_EQ(sets(x).to_vector<float>(), twice.to_vector<float>());
  EXPECT_TRUE(sets.explain().retraces.empty());
}

TEST(Retrace, CppStateThatFlipsAtEachRunEnds) {
  bool flag = false;
  const auto f = function([&](Tensor x) {
    flag = !flag;
    const Tensor y = flag ? x + 1 : x * 2;
    if (reduce_sum(y) > 20.f) return y - 1;
    return y;
  });
  int refused = 0;
  for (int call = 0; call < 20; ++call) try {
      f(input() * static_cast<float>(call % 4 + 1)).observed();
    } catch (const Error&) { ++refused; }
  EXPECT_LE(f.explain().variants, 16) << refused;
}

TEST(Retrace, ACallDoesNotBeginAnewForEver) {
  const std::string title = "function f";
  const auto old = std::make_shared<Variant>(), mine = std::make_shared<Variant>(), next = std::make_shared<Variant>();
  Restarts restarts(title);
  restarts.add(*old, "variable w was destroyed");
  restarts.add(*mine, "variable w was destroyed");  // another one that was there before
  EXPECT_EQ(restarts.take_reason(), "variable w was destroyed");
  EXPECT_EQ(restarts.reason(), "");
  restarts.add_made(mine);
  restarts.add(*mine, "variable v was destroyed");  // another reason
  restarts.add_made(next);
  const auto again = [&] { restarts.add(*next, "variable v was destroyed"); };
  const std::string message = error_of<InvalidArgument>(again);
  expect_says(message, "function f");
  expect_says(message, "variable v was destroyed");
  expect_says(message, "by reference");
}

TEST(Retrace, ReasonsThatDifferEachTimeAndOtherThreadsAreBoundedToo) {
  const std::string title = "function f";
  const auto variant = std::make_shared<Variant>();
  Restarts restarts(title);
  restarts.add_made(variant);
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) restarts.add(*variant, "variable w" + std::to_string(i) + " was destroyed");
      },
      InvalidArgument);
  EXPECT_THROW(
      {
        for (int i = 0; i < 10000; ++i) restarts.count_attempt();
      },
      Unavailable);
}

TEST(Retrace, SeveralThreadsAreAllTold) {
  const Sequential model{Dense(2)};
  model(input());
  const auto f = function([&](Tensor x) {
    const auto copy = model;
    return copy(x);
  });
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      try {
        f(input());
      } catch (const InvalidArgument&) { ++told; }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 4);
}

}  // namespace
}  // namespace gradus::retrace_test
