// Functions of functions: branches and loops in a graph, gradients of the user's own, derivatives of functions. What
// Python's functions take and give are nests of tensors; the engine sees the tensors.
#include "gradus/gradients/custom_gradient.h"
#include "gradus/ops/control.h"
#include "python/src/binding.h"
#include "python/src/nest.h"

namespace gradus::python {
namespace {

nb::object with_leaves(nb::handle nest, In tensors) {
  std::size_t next = 0;
  return map_leaves(nest, [&](nb::handle) { return nb::cast(tensors[next++]); });
}

Tensors leaves_of(nb::handle nest, std::string* structure = nullptr) {
  Tensors all;
  for_each_leaf(nest, structure, [&](nb::handle leaf) { all.push_back(tensor_of(leaf)); });
  return all;
}

/// Results of several functions, which have to be nests of one kind.
class Results {
 public:
  explicit Results(const char* op) : op_(op) {}
  Results(const char* op, nb::handle first) : op_(op) { take(first); }
  Tensors take(nb::handle result) {
    std::string structure;
    Tensors all = leaves_of(result, &structure);
    if (!first_) {
      first_ = Held(nb::borrow(result));
      structure_ = structure;
    }
    if (structure != structure_)
      throw nb::type_error(text(op_, ": the results are nests of two kinds, ", structure_, " and ", structure).c_str());
    return all;
  }
  nb::object with(In tensors) const { return with_leaves(first_.get(), tensors); }

 private:
  const char* op_;
  Held first_;
  std::string structure_;
};

nb::object python_cond(const TensorArg& predicate, const FunctionArg& if_true, const FunctionArg& if_false) {
  const Tensor truth = predicate.tensor();
  Results results("cond");
  const auto branch = [&](const FunctionArg& f) {
    return [&](In) { return in_python([&] { return results.take(f.held.get()()); }); };
  };
  const Tensors found = without_gil([&] { return gradus::detail::cond(truth, branch(if_true), branch(if_false)); });
  return results.with(found);
}

nb::object python_while_loop(const FunctionArg& condition, const FunctionArg& body, nb::handle loop_vars,
                             std::int64_t max_iterations) {
  if (!is_sequence(loop_vars)) throw nb::type_error("while_loop: loop_vars is a list or tuple of tensors and nests");
  Results results("while_loop", loop_vars);
  const auto arguments = [&](In state) { return nb::steal<nb::tuple>(PySequence_Tuple(results.with(state).ptr())); };
  const auto holds = [&](In state) {
    return in_python([&] { return Tensors{tensor_of(condition.held.get()(*arguments(state)))}; });
  };
  const auto next = [&](In state) {
    return in_python([&] {
      nb::object given = body.held.get()(*arguments(state));
      if (!is_sequence(given) && nb::len(loop_vars) == 1) given = nb::make_tuple(given);
      return results.take(PyList_Check(loop_vars.ptr()) ? nb::steal(PySequence_List(given.ptr()))
                                                        : nb::steal(PySequence_Tuple(given.ptr())));
    });
  };
  const Tensors first = leaves_of(loop_vars);
  return results.with(without_gil([&] { return gradus::detail::while_loop(holds, next, first, max_iterations); }));
}

nb::tuple python_scan(const FunctionArg& body, nb::handle init, const TensorArg& xs) {
  Results states("scan", init);
  const Tensors first = leaves_of(init);
  const auto step = [&](In in) {
    return in_python([&] {
      const nb::object given = body.held.get()(states.with(in.first(first.size())), in.back());
      if (!PyTuple_Check(given.ptr()) || PyTuple_Size(given.ptr()) != 2)
        throw nb::type_error("scan: the function gives a tuple of the next state and a result");
      Tensors all = states.take(given[0]);
      all.push_back(tensor_of(given[1]));
      return all;
    });
  };
  const Tensor rows = xs.tensor();
  Tensors found = without_gil([&] { return gradus::detail::scan(step, first, rows); });
  const Tensor stacked = found.back();
  found.pop_back();
  return nb::make_tuple(states.with(found), stacked);
}

// ---- gradients

/// One gradient for each argument; None is none.
Tensors gradients_of(nb::handle given) {
  Tensors all;
  if (!is_sequence(given)) return {given.is_none() ? Tensor() : tensor_of(given)};
  for (const nb::handle each : nb::borrow<nb::sequence>(given))
    all.push_back(each.is_none() ? Tensor() : tensor_of(each));
  return all;
}

Tensor apply_with_gradient(const FunctionArg& f, const TensorsArg& arguments) {
  const auto called = [&](In in) {
    return in_python([&] {
      nb::list tensors;
      for (const Tensor& x : in) tensors.append(x);
      const nb::object given = f.held.get()(*tensors);
      if (!PyTuple_Check(given.ptr()) || PyTuple_Size(given.ptr()) != 2 ||
          !PyCallable_Check(nb::object(given[1]).ptr()))
        throw nb::type_error(
            "custom_gradient: the function gives a tuple of its value, one tensor, and the function of its gradient");
      const Held pullback{nb::object(given[1])};
      return WithPullback{tensor_of(given[0]), [pullback](const Tensor& dy) {
                            return in_python([&] { return gradients_of(pullback.get()(dy)); });
                          }};
    });
  };
  const Tensors in = arguments.tensors();
  return without_gil([&] { return with_gradient(in, called); });
}

Tensor apply_recomputed(const FunctionArg& f, const TensorArg& x) {
  const Tensor at = x.tensor();
  const auto called = [f](In in) { return Tensors{f(in[0])}; };
  return without_gil([&] { return recomputed("recompute_grad", {&at, 1}, called)[0]; });
}

gradus::detail::TensorMap map_of(const FunctionArg& f) {
  return [f](const Tensor& x) { return f(x); };
}

template <class F> void bind_derivative(nb::module_& module, const char* name, const F& of, const char* doc) {
  module.def(
      name,
      [of](const FunctionArg& f, const TensorArg& x, std::size_t max_bytes) {
        const Tensor at = x.tensor();
        return without_gil([&] { return of(map_of(f), at, JacobianOptions{.max_bytes = max_bytes}); });
      },
      "f"_a, "x"_a, "max_bytes"_a = 0, doc);
}

void bind_derivatives(nb::module_& module) {
  bind_derivative(module, "jacobian", gradus::detail::jacobian, "The Jacobian of f at x, as [y..., x...].");
  bind_derivative(module, "batch_jacobian", gradus::detail::batch_jacobian,
                  "The Jacobian of each example, as [n, y..., x...].");
  bind_derivative(module, "hessian", gradus::detail::hessian, "The second derivatives of a scalar f, as [x..., x...].");
  module.def(
      "jvp",
      [](const FunctionArg& f, const TensorArg& x, const TensorArg& tangent) {
        const Tensor at = x.tensor(), along = tangent.tensor();
        return without_gil([&] { return gradus::detail::jvp(map_of(f), at, along); });
      },
      "f"_a, "x"_a, "tangent"_a, "f(x) and its derivative along `tangent`: forward mode.");
  module.def(
      "hessian_vector_product",
      [](const FunctionArg& f, const TensorArg& x, const TensorArg& v) {
        const Tensor at = x.tensor(), along = v.tensor();
        return without_gil([&] { return gradus::detail::hessian_vector_product(map_of(f), at, along); });
      },
      "f"_a, "x"_a, "v"_a, "H v of a scalar f, without the matrix.");
  module.def(
      "value_and_gradient",
      [](const FunctionArg& f, const TensorArg& x) {
        const Tensor at = x.tensor();
        return without_gil([&] { return value_and_gradient(map_of(f), at); });
      },
      "f"_a, "x"_a, "f(x), a scalar, and its gradient by x.");
}

}  // namespace

void bind_transforms(nb::module_& module) {
  module.def("cond", python_cond, "pred"_a, "true_fn"_a, "false_fn"_a,
             "true_fn() if the boolean holds, else false_fn(), as one op: both are traced, one is computed.");
  module.def("while_loop", python_while_loop, "cond"_a, "body"_a, "loop_vars"_a, "max_iterations"_a = 0,
             "Repeats loop_vars = body(*loop_vars) while cond(*loop_vars) holds, as one op.");
  module.def("scan", python_scan, "f"_a, "init"_a, "xs"_a,
             "Goes through the rows of xs: f(state, row) gives (state, result). Gives the last state and the stacked "
             "results.");
  module.def(
      "vectorized_map",
      [](const FunctionArg& f, const TensorArg& xs) {
        const Tensor rows = xs.tensor();
        return without_gil([&] { return gradus::detail::vectorized_map(map_of(f), rows); });
      },
      "f"_a, "xs"_a, "f applied to each row of xs, as one batched program. f is called once.");
  module.def("_with_gradient", apply_with_gradient);
  module.def("_recomputed", apply_recomputed);
  bind_derivatives(module);
}

}  // namespace gradus::python
